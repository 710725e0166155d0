"""Sends a single request to a server; the only module that imports urllib3.

A request has one of three results: the server answered, certainly did not receive it, or may have received it.
Redirects are not followed, since they would send credentials to another host; certificates are verified.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, Union

import msgspec

from paimon_py.env import Ids, SystemIds
from paimon_py.errors import UnsupportedError, UsageError

TIMEOUT_SECONDS = 180.0
"""The timeout for the server, as in Java."""

_CONNECT_SECONDS = 30.0
_POOLS = 4
_CONNECTIONS = 32
_BODY_BYTES_MAX = 256 << 20
_PART_BYTES = 1 << 20


class Answer(msgspec.Struct, frozen=True, tag=True):
    """An answer of the server. Header names are in lower case. `repr` shows neither headers nor body."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def __repr__(self) -> str:
        return f"Answer({self.status}, {len(self.body)} bytes)"


class Unsent(msgspec.Struct, frozen=True, tag=True):
    """The server certainly did not receive the request."""

    reason: str


class Unanswered(msgspec.Struct, frozen=True, tag=True):
    """The server may have executed the request; its answer was lost, truncated, or took too long (`slow`)."""

    reason: str
    slow: bool = False


Reply = Union[Answer, Unsent, Unanswered]


class Sender(Protocol):
    """Sends requests."""

    def send(self, method: str, url: str, headers: Mapping[str, str], body: bytes | None) -> Reply:
        """Send one request, once."""
        ...


class HttpSender:
    """Sends over HTTP and HTTPS. Connections are pooled and shared by threads; a forked process opens its own."""

    __slots__ = ("_ids", "_pool", "_timeout_seconds")

    def __init__(self, *, ids: Ids | None = None, timeout_seconds: float = TIMEOUT_SECONDS) -> None:
        self._ids = ids or SystemIds()
        self._timeout_seconds = timeout_seconds
        self._pool: tuple[int, Any] | None = None

    def send(self, method: str, url: str, headers: Mapping[str, str], body: bytes | None) -> Reply:
        """See `Sender.send`.

        Raises: UsageError if the URL is invalid.
        """
        import urllib3

        try:
            answer = self._connections().request(
                method, url, body=body, headers=dict(headers), redirect=False, retries=False, preload_content=False
            )
        except (urllib3.exceptions.NewConnectionError, urllib3.exceptions.ConnectTimeoutError) as error:
            return Unsent(_text(error))
        except (urllib3.exceptions.LocationValueError, urllib3.exceptions.URLSchemeUnknown) as error:
            raise UsageError(f"option 'uri' is not the URL of a server: {type(error).__name__}") from None
        except urllib3.exceptions.HTTPError as error:
            return _unanswered_error(error)
        try:
            data = bytearray()
            while part := answer.read(_PART_BYTES, decode_content=False):
                data += part
                if len(data) > _BODY_BYTES_MAX:
                    answer.close()
                    return Unanswered(f"the answer has more than {_BODY_BYTES_MAX} bytes")
        except urllib3.exceptions.HTTPError as error:
            answer.close()
            return _unanswered_error(error)
        answer.release_conn()
        return Answer(answer.status, {name.lower(): value for name, value in answer.headers.items()}, bytes(data))

    def _connections(self) -> Any:
        import urllib3

        process = self._ids.process()
        if self._pool is None or self._pool[0] != process:
            timeout = urllib3.Timeout(connect=_CONNECT_SECONDS, read=self._timeout_seconds)
            self._pool = process, urllib3.PoolManager(_POOLS, maxsize=_CONNECTIONS, timeout=timeout)
        return self._pool[1]

    def __reduce__(self) -> tuple[object, ...]:
        return HttpSender, ()


def require_package() -> None:
    """Check that urllib3 can be imported.

    Raises: UnsupportedError with the command that installs it.
    """
    try:
        import urllib3  # noqa: F401
    except ImportError as error:
        raise UnsupportedError(
            "the REST catalog needs the package urllib3: pip install 'paimon-py[rest]'", feature="metastore=rest"
        ) from error


def _unanswered_error(error: Exception) -> Unanswered:
    import urllib3

    return Unanswered(_text(error), slow=isinstance(error, urllib3.exceptions.TimeoutError))


def _text(error: Exception) -> str:
    """The message of a urllib3 error, without the connection at its beginning."""
    return f"{type(error).__name__}: {str(error).rpartition('>: ')[2] or error}"
