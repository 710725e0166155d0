"""Converts failures of an fsspec file system to storage errors that repeat no secret.

Source: docs/security.md, "Secrets".
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar, cast
from urllib.parse import quote, quote_plus

from paimon_py.env import environment
from paimon_py.errors import PaimonError, StorageError, StorageUnknownError
from paimon_py.spec.redact import HIDDEN, shown_text
from paimon_py.storage.cloud_options import secret_texts
from paimon_py.storage.local_store import LocalStore
from paimon_py.storage.store import FileMissingError

Verb = TypeVar("Verb", bound=Callable[..., Any])
_REFUSED_STATUS = {400, 401, 403, 404, 405, 411, 413}
_TRANSIENT_STATUS = {408, 409, 429, 500, 502, 503, 504}
_NEVER_SENT = {"NoCredentialsError", "PartialCredentialsError", "DefaultCredentialsError", "RefreshError"}
_NO_ANSWER = {"RequestError"}
_CAUSES_MAX = 8
_VARIABLE_LENGTH = 6
_SECRET_VARIABLE = re.compile(
    "^(AWS|AZURE|GOOGLE|GCLOUD|GCS|OSS|S3)_.*(KEY|SECRET|TOKEN|PASSWORD|CREDENTIALS|CONNECTION_STRING)"
)


class Failures:
    """Converts errors of a file system, without the secrets among its arguments."""

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        self._arguments = arguments

    @contextmanager
    def translate(self, operation: str, path: str) -> Iterator[None]:
        try:
            yield
        except PaimonError:
            raise
        except FileNotFoundError as error:
            cause = self.public_cause(error)
            raise FileMissingError(f"{path} does not exist", path=path, operation=operation) from cause
        except Exception as error:  # noqa: BLE001 - raised as ours, the cause shown unless it has a secret
            raise self.error(operation, path, error) from self.public_cause(error)

    def error(self, operation: str, path: str, error: Exception, *, ambiguous: bool = False) -> StorageError:
        if isinstance(error, StorageError):
            return error
        status = http_status(error)
        text = f"{operation} of {path} failed: {type(error).__name__}: {self.redact(str(error))}"
        unsent = type(error).__name__ in _NEVER_SENT
        if unsent:
            text += "; give credentials in options, such as s3.access-key and s3.secret-key, or as the store's tools do"
        refused = status in _REFUSED_STATUS or unsent
        if ambiguous and not refused:
            return StorageUnknownError(text, path=path, operation=operation, transient=True)
        transient = status in _TRANSIENT_STATUS or (
            status is None
            and (isinstance(error, TimeoutError | ConnectionError) or type(error).__name__ in _NO_ANSWER)
        )
        return StorageError(text, path=path, operation=operation, transient=transient)

    def public_cause(self, error: Exception) -> Exception | None:
        """The error as the cause of ours, which tracebacks print; None if it or one of its causes contains a secret."""
        hide = self._hiding()
        left: list[BaseException] = [error]
        known = {id(error)}
        while left:
            behind = left.pop()
            texts = (str(behind), repr(behind), repr(vars(behind)))
            if len(known) > _CAUSES_MAX or any(hide(text) != text for text in texts):
                return None
            for further in (behind.__cause__, behind.__context__):
                if further is not None and id(further) not in known:
                    known.add(id(further))
                    left.append(further)
        return error

    def redact(self, text: str) -> str:
        """A text without the secrets of the arguments, of key files they name and of the environment."""
        return self._hiding()(text)

    def _hiding(self) -> Callable[[str], str]:
        found = secret_texts(self._arguments) | _key_file(self._arguments.get("token")) | _of_environment()
        spelled = {way for one in found for way in (one, repr(one)[1:-1], quote(one, safe=""), quote_plus(one))}
        longest_first = sorted(spelled, key=len, reverse=True)

        def hide(text: str) -> str:
            for secret in longest_first:
                text = text.replace(secret, HIDDEN)
            return shown_text(text)

        return hide


def _key_file(token: object) -> frozenset[str]:
    """The secrets in a key file, if a token names one."""
    try:
        return secret_texts({"token": LocalStore().get(str(token)).decode()}) if token else frozenset()
    except (StorageError, ValueError):
        return frozenset()


def _of_environment() -> frozenset[str]:
    """The secrets that the environment provides to the cloud's own chain of credentials."""
    found: frozenset[str] = frozenset()
    for name, value in environment().items():
        if _SECRET_VARIABLE.search(name) is None:
            continue
        if len(value) >= _VARIABLE_LENGTH:
            found |= secret_texts({"token": value})
        if name.endswith("_CREDENTIALS"):
            found |= _key_file(value)
    return found


def hide_causes(verb: Verb) -> Verb:
    """A verb whose errors keep only causes without secrets; Python would keep any error as the context."""

    @functools.wraps(verb)
    def call(*arguments: Any, **named: Any) -> Any:
        try:
            return verb(*arguments, **named)
        except PaimonError as error:
            failed = error
        failed.__context__ = failed.__cause__
        try:
            raise failed
        finally:
            del failed

    return cast(Verb, call)


def http_status(error: BaseException | None) -> int | None:
    """The HTTP status of an error of any SDK."""
    seen = 0
    while error is not None and seen < _CAUSES_MAX:
        response = getattr(error, "response", None)
        if isinstance(response, dict):
            status = response.get("ResponseMetadata", {}).get("HTTPStatusCode")
        else:
            status = (
                getattr(error, "status_code", None) or getattr(error, "status", None) or getattr(error, "code", None)
            )
        if (isinstance(status, int) and status > 0) or (isinstance(status, str) and status.isdigit()):
            return int(status)
        error = error.__cause__ or error.__context__
        seen += 1
    return None
