"""Sends requests to an Iceberg REST catalog.

Source: Apache Iceberg REST catalog specification; Java `RESTSessionCatalog` for the names of options.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlencode

import msgspec

from paimon_py.env import Env
from paimon_py.errors import StorageError, StorageUnknownError, UsageError
from paimon_py.metastores.rest.http import Answer, Sender, Unanswered
from paimon_py.metastores.rest.retries import Retries, send_until_answered
from paimon_py.spec.redact import HIDDEN, shown_text, shown_url

_ATTEMPTS = 4
_HEADER = "header."
_NONE: Mapping[str, Any] = {}


class CatalogRefusedError(Exception):
    """The server refused the request. Attributes: `status` of HTTP, `message` of the server."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"HTTP {status}: {message}")
        self.status = status
        self.message = message


class IcebergRestClient:
    """Sends requests to one server. Can be used from several threads.

    Args:
        options: options with the names that Iceberg's clients use: `uri`, `warehouse`, `prefix`, `token`, `credential`,
            `scope`, `oauth2-server-uri`, `header.<name>`.
    """

    def __init__(self, options: Mapping[str, str], sender: Sender, env: Env) -> None:
        self._given = dict(options)
        self._uri = options["uri"].rstrip("/")
        self._sender = sender
        self._env = env
        self._settings: Mapping[str, str] | None = None
        self._token = options.get("token")

    @property
    def address(self) -> str:
        """The server's address, for messages."""
        return shown_url(self._uri)

    def table_path(self, namespace: str, table: str = "") -> str:
        """The path of a table below the prefix, or of all tables of a namespace."""
        return f"namespaces/{quote(namespace, safe='')}/tables" + (f"/{quote(table, safe='')}" if table else "")

    def ask(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Mapping[str, Any]:
        """The answer to a request below the prefix.

        Raises:
            CatalogRefusedError: the server refused; nothing was changed.
            UsageError: the server does not accept the credentials.
            StorageUnknownError: the server may have executed the request. StorageError: nothing was changed.
        """
        prefix = self._config().get("prefix", "").strip("/")
        return self._ask(method, f"{self._uri}/v1/{prefix + '/' if prefix else ''}{path}", body)

    def _config(self) -> Mapping[str, str]:
        """The options merged with those of the server. Cost: one request, only once."""
        if self._settings is None:
            if self._token is None and self._given.get("credential"):
                self._token = self._fetch_token()
            warehouse = self._given.get("warehouse")
            query = f"?{urlencode({'warehouse': warehouse})}" if warehouse else ""
            try:
                answer_config = self._ask("GET", f"{self._uri}/v1/config{query}", None)
            except CatalogRefusedError as error:
                raise self._failure("GET /v1/config", str(error)) from None
            defaults, overrides = answer_config.get("defaults", _NONE), answer_config.get("overrides", _NONE)
            self._settings = {**defaults, **self._given, **overrides}
        return self._settings

    def _fetch_token(self) -> str:
        """A token for the credential `id:secret`, or `secret`."""
        user, colon, secret = self._given["credential"].partition(":")
        form = {"grant_type": "client_credentials", "scope": self._given.get("scope", "catalog")}
        form |= {"client_id": user, "client_secret": secret} if colon else {"client_secret": user}
        url = self._given.get("oauth2-server-uri") or "v1/oauth/tokens"
        url = url if "://" in url else f"{self._uri}/{url.lstrip('/')}"
        headers = {"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"}
        answer = self._send("POST", url, headers, urlencode(form).encode())
        found = self._json(answer).get("access_token")
        if answer.status != 200 or not isinstance(found, str):
            raise UsageError(
                f"{shown_url(url)} returns no token for the option metadata.iceberg.rest.credential:"
                f" HTTP {answer.status}"
            )
        return found

    def _ask(self, method: str, url: str, body: Mapping[str, Any] | None) -> Mapping[str, Any]:
        data = None if body is None else msgspec.json.encode(body)
        answer = self._send(method, url, self._headers(data), data)
        if answer.status == 401 and self._given.get("credential"):
            self._token = self._fetch_token()
            answer = self._send(method, url, self._headers(data), data)
        if answer.status < 300:
            return self._json(answer)
        error = self._json(answer).get("error", _NONE)
        message = self._redact(str(error.get("message") or "no message"))
        what = f"{method} {shown_url(url).removeprefix(self.address)}"
        if answer.status in (401, 403):
            raise UsageError(
                f"{self.address}: {what}: HTTP {answer.status}: {message}; see the options metadata.iceberg.rest.token"
                " and metadata.iceberg.rest.credential"
            )
        if answer.status >= 500:
            if method == "GET":
                raise self._failure(what, f"HTTP {answer.status}: {message}")
            raise self._unknown(what, f"HTTP {answer.status}: {message}")
        raise CatalogRefusedError(answer.status, message)

    def _headers(self, data: bytes | None) -> dict[str, str]:
        found = {name[len(_HEADER) :]: text for name, text in self._given.items() if name.startswith(_HEADER)}
        found["Accept"] = "application/json"
        if data is not None:
            found["Content-Type"] = "application/json"
        if self._token:
            found["Authorization"] = f"Bearer {self._token}"
        return found

    def _send(self, method: str, url: str, headers: Mapping[str, str], data: bytes | None) -> Answer:
        """Send a request; without an answer only a request that changes nothing is repeated."""
        what, changes = f"{method} {shown_url(url).removeprefix(self.address)}", method != "GET"
        retries = Retries(attempts=_ATTEMPTS, repeats_unanswered=not changes, wait=self._wait)
        reply, may_be_done = send_until_answered(lambda: self._sender.send(method, url, headers, data), retries)
        if isinstance(reply, Answer):
            return reply
        if changes and (may_be_done or isinstance(reply, Unanswered)):
            raise self._unknown(what, self._redact(reply.reason))
        raise self._failure(what, self._redact(reply.reason))

    def _wait(self, _busy: Answer | None, attempt: int) -> None:
        self._env.clock.sleep(0.2 * 2.0**attempt * (1 + 0.1 * self._env.ids.jitter()))

    def _json(self, answer: Answer) -> Mapping[str, Any]:
        """The JSON of an answer; {} if the answer has no body, or is an error whose body is not JSON."""
        try:
            found = msgspec.json.decode(answer.body) if answer.body else {}
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            found = None
        if isinstance(found, dict):
            return found
        if answer.status >= 300:
            return {}
        raise self._failure("", "the answer is not one of an Iceberg REST catalog")

    def _failure(self, what: str, reason: str) -> StorageError:
        return StorageError(f"{self.address}: {what}: {reason}", operation=what, transient=True)

    def _unknown(self, what: str, reason: str) -> StorageUnknownError:
        text = f"{self.address}: {what}: {reason}; it is not known whether the server executed it"
        return StorageUnknownError(text, operation=what, transient=True)

    def _redact(self, text: str) -> str:
        for name in ("token", "credential"):
            for secret in (self._given.get(name) or "").split(":"):
                text = text.replace(secret, HIDDEN) if len(secret) > 3 else text
        return shown_text(text.replace(self._token, HIDDEN) if self._token else text)
