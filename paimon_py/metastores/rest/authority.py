"""Authentication at the server: headers from tokens and keys in options, in files that are read again, or from the
machine's role.

Source: Java `BearTokenAuthProvider`, `DLFAuthProvider`, `DLFLocalFileTokenLoader`, `DLFECSTokenLoader`, main of August
2026; `token.provider.path` is of release 1.0.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping
from typing import Protocol

import msgspec

from paimon_py.env import Env
from paimon_py.errors import OptionError, StorageError, UnsupportedError, UsageError
from paimon_py.metastores.rest.http import Answer, Sender
from paimon_py.metastores.rest.signing import (
    ALGORITHMS,
    DEFAULT,
    AccessKeys,
    HttpRequest,
    algorithm_for,
    default_headers,
    host_in,
    openapi_headers,
    region_in,
)
from paimon_py.storage.open import open_store
from paimon_py.storage.refreshing_store import SAFE_MILLIS

PROVIDER = "token.provider"
TOKEN = "token"
TOKEN_FILE = "token.provider.path"

_ECS_URL = "http://100.100.100.200/latest/meta-data/Ram/security-credentials/"
_FILE_ATTEMPTS = 5


class Authority(Protocol):
    """Authenticates requests."""

    def headers(self, request: HttpRequest) -> Mapping[str, str]:
        """The authentication headers of a request.

        Raises: UsageError, StorageError if credentials are not available.
        """
        ...

    def secrets(self) -> tuple[str, ...]:
        """Strings that must not be shown."""
        ...


def authority_of(options: Mapping[str, str], uri: str, env: Env, sender: Sender) -> Authority:
    """The authentication that options configure.

    Raises: UsageError, OptionError, UnsupportedError
    """
    provider = options.get(PROVIDER)
    if provider == "bear":
        return _Bearer(_bearer_token(options))
    if provider == "dlf":
        return _dlf(options, uri, env, sender)
    if not provider:
        raise UsageError(f"the REST catalog needs the option {PROVIDER!r}: 'bear' with 'token', or 'dlf' with its keys")
    raise UnsupportedError(
        f"option {PROVIDER} = {provider!r} is not supported; use 'bear' or 'dlf'",
        feature=f"{PROVIDER}={provider}",
    )


class _Bearer:
    """Authentication by a bearer token."""

    __slots__ = ("_last", "_read")

    def __init__(self, read: Callable[[], str]) -> None:
        self._read = read
        self._last = ""

    def headers(self, request: HttpRequest) -> Mapping[str, str]:  # noqa: ARG002
        """See `Authority.headers`. Cost: a token file is read for each request."""
        self._last = token = self._read()
        return {"Authorization": f"Bearer {token}"}

    def secrets(self) -> tuple[str, ...]:
        """See `Authority.secrets`."""
        return (self._last,) if self._last else ()


def _bearer_token(options: Mapping[str, str]) -> Callable[[], str]:
    token, path = options.get(TOKEN), options.get(TOKEN_FILE)
    if token is not None:
        return lambda: _header_text(token, TOKEN)
    if path is not None:
        return lambda: _header_text(_file(path).decode("utf-8", "replace").strip(), TOKEN_FILE)
    raise UsageError(
        f"'{PROVIDER}' = 'bear' needs the option {TOKEN!r}, or {TOKEN_FILE!r} with the path of a file that holds the"
        " token; pickles contain no tokens: open the catalog again, or pass the path of a file"
    )


def _header_text(token: str, option: str) -> str:
    if not token or not token.isascii() or not token.isprintable():
        raise OptionError(f"option {option!r} is not a token: one line of ASCII text", option=option)
    return token


def _file(path: str) -> bytes:
    store, place = open_store(path, {})
    return store.get(place)


class _Dlf:
    """Authentication by access keys that sign each request; temporary keys are refreshed before they expire."""

    __slots__ = ("_env", "_host", "_keys", "_load", "_region")

    def __init__(self, load: Callable[[], AccessKeys], env: Env, *, host: str, region: str | None) -> None:
        """`region`: None selects the OpenAPI signature."""
        self._load = load
        self._env = env
        self._host = host
        self._region = region
        self._keys: AccessKeys | None = None

    def headers(self, request: HttpRequest) -> Mapping[str, str]:
        """See `Authority.headers`. Cost: keys that expire within an hour are loaded again."""
        now, keys = self._env.clock.millis(), self._keys
        if keys is None or (keys.expires_millis is not None and keys.expires_millis - now < SAFE_MILLIS):
            self._keys = keys = self._load()
        if self._region is None:
            return openapi_headers(request, keys, self._host, now, self._env.ids.uuid())
        return default_headers(request, keys, self._region, now)

    def secrets(self) -> tuple[str, ...]:
        """See `Authority.secrets`."""
        keys = self._keys
        return () if keys is None else tuple(text for text in (keys.secret, keys.security_token) if text)


def _dlf(options: Mapping[str, str], uri: str, env: Env, sender: Sender) -> _Dlf:
    algorithm = options.get("dlf.signing-algorithm") or algorithm_for(uri)
    if algorithm not in ALGORITHMS:
        known = ", ".join(map(repr, ALGORITHMS))
        raise OptionError(
            f"option 'dlf.signing-algorithm' must be one of {known}", option="dlf.signing-algorithm", value=algorithm
        )
    region = (options.get("dlf.region") or region_in(uri)) if algorithm == DEFAULT else None
    return _Dlf(_dlf_loader(options, env, sender), env, host=host_in(uri), region=region)


def _dlf_loader(options: Mapping[str, str], env: Env, sender: Sender) -> Callable[[], AccessKeys]:
    loader, path = options.get("dlf.token-loader"), options.get("dlf.token-path")
    if loader not in (None, "local_file", "ecs"):
        raise UnsupportedError(
            f"option dlf.token-loader = {loader!r} is not supported; use 'local_file' or 'ecs'",
            feature=f"dlf.token-loader={loader}",
        )
    if loader == "ecs":
        url, role = options.get("dlf.token-ecs-metadata-url", _ECS_URL), options.get("dlf.token-ecs-role-name")
        return lambda: _role_keys(sender, url, role)
    if path is not None:
        return lambda: _keys_in_file(path, env)
    if loader is not None:
        message = "'dlf.token-loader' = 'local_file' needs the option 'dlf.token-path'"
        raise OptionError(message, option="dlf.token-path")
    access_key, secret = options.get("dlf.access-key-id"), options.get("dlf.access-key-secret")
    if access_key and secret:
        keys = AccessKeys(access_key, secret, options.get("dlf.security-token"))
        return lambda: keys
    raise UsageError(
        f"'{PROVIDER}' = 'dlf' needs 'dlf.access-key-id' and 'dlf.access-key-secret', or the path of a file with keys"
        " in 'dlf.token-path'; pickles contain no keys: open the catalog again, or pass the path of a file"
    )


class _KeyFile(msgspec.Struct, frozen=True):
    """Access keys in DLF's file format."""

    AccessKeyId: str
    AccessKeySecret: str
    SecurityToken: str | None = None
    Expiration: str | None = None


def _keys_in_file(path: str, env: Env) -> AccessKeys:
    """The keys in a file. Another process may be rewriting the file, so reading is attempted again."""
    for attempt in range(1, _FILE_ATTEMPTS + 1):
        try:
            return _keys(_file(path))
        except (StorageError, msgspec.MsgspecError, ValueError) as error:
            if attempt == _FILE_ATTEMPTS:
                failed = error if isinstance(error, StorageError) else None  # other errors may contain the keys
                message = f"{path} contains no DLF keys: {type(error).__name__}"
                raise StorageError(message, path=path, operation="token file") from failed
            env.clock.sleep(float(attempt))
    raise AssertionError("there is a last attempt")


def _role_keys(sender: Sender, url: str, role: str | None) -> AccessKeys:
    """The keys of the machine's role, from the cloud's metadata service."""
    if not role:
        role = _metadata(sender, url).decode("utf-8", "replace").strip()
    try:
        return _keys(_metadata(sender, url.rstrip("/") + "/" + role))
    except (msgspec.MsgspecError, ValueError):
        options = "'dlf.token-ecs-metadata-url', 'dlf.token-ecs-role-name'"
        message = f"the metadata service returned no DLF keys: see {options}"
        raise StorageError(message, operation="role token") from None


def _metadata(sender: Sender, url: str) -> bytes:
    reply = sender.send("GET", url, {}, None)
    if isinstance(reply, Answer) and reply.status == 200:
        return reply.body
    shown = f"HTTP {reply.status}" if isinstance(reply, Answer) else reply.reason
    raise StorageError(f"the metadata service of the machine's role: {shown}", operation="role token", transient=True)


def _keys(data: bytes) -> AccessKeys:
    found = msgspec.json.decode(data, type=_KeyFile)
    expires = None
    if found.Expiration is not None:
        at = datetime.datetime.strptime(found.Expiration, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=datetime.timezone.utc)
        expires = int(at.timestamp()) * 1000
    return AccessKeys(found.AccessKeyId, found.AccessKeySecret, found.SecurityToken, expires)
