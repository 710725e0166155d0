"""Sends requests to one server, with authentication, retries, and errors by status.

Source: Java `HttpClient`, `ExponentialHttpRequestRetryStrategy`, `DefaultErrorHandler`, main of August 2026.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping
from email.utils import parsedate_to_datetime
from typing import TypeVar
from urllib.parse import quote

import msgspec

from paimon_py.env import Env
from paimon_py.errors import PaimonError, StorageError, StorageUnknownError, UnsupportedError, UsageError
from paimon_py.metastores.rest.authority import Authority
from paimon_py.metastores.rest.http import Answer, Sender, Unanswered, Unsent
from paimon_py.metastores.rest.messages import Failure, RestAnswer
from paimon_py.metastores.rest.retries import BUSY, Retries, send_until_answered
from paimon_py.metastores.rest.signing import HttpRequest
from paimon_py.spec.redact import HIDDEN, shown_text, shown_url

RETRIES = 5
_DONE = frozenset((200, 202, 204))
_LONGEST_WAIT_SECONDS = 64.0
_LONGEST_ASKED_SECONDS = 600.0
"""The maximum delay that a server can request."""

M = TypeVar("M", bound=RestAnswer)


class RestRefusedError(StorageError):
    """The server refused the request.

    Attributes:
        status: the HTTP status, possibly corrected by the body.
        resource: the kind of object in the answer, such as TABLE; "" if unknown.
        name: the name of the object.
        unsure: an earlier call of the same change may have been executed.
    """

    kind = "refused"

    def __init__(self, message: str, *, operation: str, status: int, failure: Failure, unsure: bool) -> None:
        super().__init__(message, operation=operation)
        self.status = status
        self.resource = failure.resourceType or ""
        self.name = failure.resourceName or ""
        self.unsure = unsure


class Transport:
    """Sends requests to one server.

    Args:
        uri: address without a trailing slash.
        authority: created when the first request is signed.
    """

    __slots__ = ("_authority", "_env", "_make_authority", "_sender", "_uri")

    def __init__(self, uri: str, authority: Callable[[], Authority], env: Env, sender: Sender) -> None:
        self._uri = uri
        self._make_authority = authority
        self._authority: Authority | None = None
        self._env = env
        self._sender = sender

    @property
    def address(self) -> str:
        """The server's address, for messages."""
        return shown_url(self._uri)

    def ask(self, request: HttpRequest, headers: Mapping[str, str]) -> Answer:
        """Send a request until the server returns a usable answer.

        Raises:
            RestRefusedError: the server refuses; `unsure`: an earlier call may have been executed.
            StorageUnknownError: the server may have executed it.
            UsageError, UnsupportedError, StorageError: nothing was changed.
        """
        changes, repeats = request.method != "GET", request.method != "POST"
        retries = Retries(attempts=RETRIES + 1, repeats_unanswered=repeats, wait=self._wait)
        reply, may_be_done = send_until_answered(lambda: self._sender.send(*self._sign(request, headers)), retries)
        unsure = changes and may_be_done
        if isinstance(reply, Unsent):
            raise self._unreachable(request, reply.reason, unknown=unsure)
        if isinstance(reply, Unanswered):
            raise self._unreachable(request, reply.reason, unknown=changes)
        if reply.status in _DONE:
            return reply
        failure = self._failure(reply)
        if request.method == "DELETE" and unsure and (failure.code or reply.status) == 404:
            return reply
        raise self._refusal(request, reply, failure, unsure=unsure)

    def decode(self, answer: Answer, kind: type[M], operation: str) -> M:
        """Decode the message in an answer. Raises: StorageError that quotes nothing of undecodable content."""
        try:
            return msgspec.json.decode(answer.body, type=kind)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            message = f"{self.address}: {operation}: the answer is not a {kind.__name__} of a REST catalog"
            raise StorageError(message, operation=operation) from None

    def _sign(
        self, request: HttpRequest, headers: Mapping[str, str]
    ) -> tuple[str, str, Mapping[str, str], bytes | None]:
        if self._authority is None:
            self._authority = self._make_authority()
        query = "&".join(f"{quote(name, safe='')}={quote(text, safe='')}" for name, text in request.query.items())
        url = self._uri + request.path + ("?" + query if query else "")
        sent = {"Accept": "application/json", **headers}
        if request.body:
            sent["Content-Type"] = "application/json"
        sent |= self._authority.headers(request)
        return request.method, url, sent, request.body.encode() if request.body else None

    def _refusal(self, request: HttpRequest, answer: Answer, failure: Failure, *, unsure: bool) -> PaimonError:
        status = failure.code or answer.status
        said = self._redact(failure.message) if failure.message else "no message"
        named = next((value for name, value in answer.headers.items() if "request-id" in name), None)
        operation = f"{request.method} {request.path}"
        text = f"{self.address}: {operation}: HTTP {status}: {said}" + (f" (request {named})" if named else "")
        if status == 400 and not unsure:
            return UsageError(text)
        if status == 501 and not unsure:
            return UnsupportedError(text, feature=f"{operation} of this server")
        if status == 401:
            text += "; the server does not accept these credentials: see the options 'token.provider' and 'token'"
        if status == 403:
            text += "; the credentials are valid, but do not permit this"
        if answer.status in range(300, 400):
            text += "; redirects are not followed: set the option 'uri' to the final address"
        if (status >= 500 and status != 501) or status in BUSY:
            if request.method != "GET":
                text += "; it is not known whether it was executed: check before trying again"
                return StorageUnknownError(text, operation=operation, transient=True)
            return StorageError(text, operation=operation, transient=True)
        return RestRefusedError(text, operation=operation, status=status, failure=failure, unsure=unsure)

    def _failure(self, answer: Answer) -> Failure:
        try:
            return msgspec.json.decode(answer.body, type=Failure)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return Failure(message="the answer is not an error of a catalog")

    def _unreachable(self, request: HttpRequest, reason: str, *, unknown: bool) -> StorageError:
        operation = f"{request.method} {request.path}"
        text = f"{self.address}: {operation}: {self._redact(reason)}"
        if unknown:
            text += "; it is not known whether it was executed: check before trying again"
            return StorageUnknownError(text, operation=operation, transient=True)
        return StorageError(text, operation=operation, transient=True)

    def _redact(self, text: str) -> str:
        for secret in () if self._authority is None else self._authority.secrets():
            text = text.replace(secret, HIDDEN)
        return shown_text(text)

    def _wait(self, busy: Answer | None, attempt: int) -> None:
        seconds = self._wait_seconds(attempt) if busy is None else self._asked_wait_seconds(busy, attempt)
        self._env.clock.sleep(seconds)

    def _wait_seconds(self, attempt: int) -> float:
        seconds = min(2.0 ** (attempt - 1), _LONGEST_WAIT_SECONDS)
        return seconds * (1 + 0.1 * self._env.ids.jitter())

    def _asked_wait_seconds(self, answer: Answer, attempt: int) -> float:
        asked = answer.headers.get("retry-after", "").strip()
        seconds = float(asked) if asked.isascii() and asked.isdigit() else _until(asked, self._env.clock.millis())
        return min(seconds, _LONGEST_ASKED_SECONDS) if seconds > 0 else self._wait_seconds(attempt)


def _until(date: str, now_millis: int) -> float:
    """Seconds until an HTTP date, 0 if it is invalid."""
    try:
        at = parsedate_to_datetime(date)
    except (ValueError, TypeError, IndexError):
        return 0.0
    if at.tzinfo is None:
        at = at.replace(tzinfo=datetime.timezone.utc)
    return at.timestamp() - now_millis / 1000
