"""The client of one REST catalog server: configuration, pages, and changes whose result is checked after a lost answer.

Reads are repeated if the answer was lost. Changes are repeated only if the server reports that it is busy, as in Java;
then, as after a lost answer, the outcome of the first call is unknown: such a failure is a `StorageUnknownError`, or a
`RestRefusedError` with `unsure`, and `RestClient.change` checks the current state.

Source: Java `RESTApi`, `ResourcePaths`, main of August 2026.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar
from urllib.parse import quote_plus

import msgspec

from paimon_py.env import Env
from paimon_py.errors import OptionError, PaimonError, StorageError, StorageUnknownError, UsageError
from paimon_py.metastores.options import WAREHOUSE
from paimon_py.metastores.rest.authority import authority_of
from paimon_py.metastores.rest.http import Answer, HttpSender, Sender
from paimon_py.metastores.rest.messages import Config, ListPage, RestAnswer
from paimon_py.metastores.rest.signing import HttpRequest
from paimon_py.metastores.rest.transport import RestRefusedError, Transport
from paimon_py.spec.redact import harmless_options, shown_url

URI = "uri"
PREFIX = "prefix"
HEADER = "header."

_SENT = frozenset((URI, PREFIX, WAREHOUSE, "token.provider", "token.provider.path", "data-token.enabled", "dlf.region",
                   "dlf.token-path", "dlf.token-loader", "dlf.token-ecs-metadata-url", "dlf.token-ecs-role-name",
                   "dlf.signing-algorithm", "dlf.oss-endpoint", "header.User-Agent"))  # fmt: skip
"""Catalog options that pickles contain."""

_ADDRESS = re.compile(r"https?://(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(:\d+)?(/[!-~]*)?")
M = TypeVar("M", bound=RestAnswer)
P = TypeVar("P", bound=ListPage)


class RestClient:
    """The client of one server, for one warehouse. Pickles contain only options that are known to be no secrets."""

    __slots__ = ("_given", "_merged", "_transport", "env")

    def __init__(
        self,
        options: Mapping[str, str],
        env: Env,
        *,
        sender: Sender | None = None,
        merged: Mapping[str, str] | None = None,
    ) -> None:
        """`merged`: the options including those from the server; None: they are requested on first use."""
        self.env = env
        self._given = given = dict(options)
        self._merged = None if merged is None else dict(merged)
        uri, sends = _checked_uri(options.get(URI)), sender or HttpSender(ids=env.ids)
        self._transport = Transport(uri, lambda: authority_of(given, uri, env, sends), env, sends)

    @property
    def address(self) -> str:
        """The server's address, for messages."""
        return self._transport.address

    def options(self) -> Mapping[str, str]:
        """The options of the catalog, including those from the server. Cost: one request on first use."""
        if self._merged is None:
            warehouse = self._given.get(WAREHOUSE)
            query = {WAREHOUSE: warehouse} if warehouse else {}
            answer = self._transport.ask(HttpRequest("GET", "/v1/config", query), _headers(self._given))
            self._merged = self.decode(answer, Config, "config").merge(self._given)
        return self._merged

    def path(self, *parts: str) -> str:
        """The path of a resource; parts are unencoded names."""
        prefix = self.options().get(PREFIX)
        return "/".join(["/v1", *map(_encode_part, ([prefix] if prefix else []) + list(parts))])

    def get(self, path: str, kind: type[M], query: Mapping[str, str] | None = None) -> M:
        """Get a resource.

        Raises: RestRefusedError, UsageError, UnsupportedError, StorageError
        """
        return self.decode(self._ask(HttpRequest("GET", path, query or {})), kind, path)

    def pages(self, path: str, kind: type[P], query: Mapping[str, str] | None = None) -> Iterator[P]:
        """All pages of a list. Cost, Raises: as `get`, per page"""
        asked, seen = dict(query or {}), set[str]()
        while True:
            page = self.get(path, kind, asked)
            yield page
            token = page.nextPageToken
            if not token or not page.items():
                return
            if token in seen:
                raise StorageError(f"{path}: the server returned the same page twice", operation="list")
            seen.add(token)
            asked["pageToken"] = token

    def post(self, path: str, body: object) -> Answer:
        """Send a change; repeated while the server is busy. Raises: as `Transport.ask`"""
        text = msgspec.json.encode(body).decode()
        return self._ask(HttpRequest("POST", path, {}, text))

    def delete(self, path: str) -> None:
        """Delete a resource; if it does not exist after a lost answer, it was deleted. Raises: as `post`"""
        self._ask(HttpRequest("DELETE", path))

    def change(self, path: str, body: object, is_done: Callable[[], bool]) -> None:
        """Send a change. If its outcome is unknown, `is_done` checks it.

        Raises: as `post`; StorageUnknownError only if the change is not found.
        """
        try:
            self.post(path, body)
        except (StorageUnknownError, RestRefusedError) as failed:
            if isinstance(failed, RestRefusedError) and not failed.unsure:
                raise
            try:
                found = is_done()
            except PaimonError as error:
                message = f"{failed}; the current state cannot be read either: {error}"
                raise StorageUnknownError(message, operation=failed.operation, transient=True) from error
            if not found:
                raise

    def decode(self, answer: Answer, kind: type[M], operation: str) -> M:
        """The message in an answer. Raises: as `Transport.decode`"""
        return self._transport.decode(answer, kind, operation)

    def _ask(self, request: HttpRequest) -> Answer:
        return self._transport.ask(request, _headers(self.options()))

    def __repr__(self) -> str:
        return f"RestClient({self.address!r})"

    def __reduce__(self) -> tuple[object, ...]:
        merged = None if self._merged is None else _harmless(self._merged)
        return _reopen, (_harmless(self._given), merged)


def _reopen(options: Mapping[str, str], merged: Mapping[str, str] | None) -> RestClient:
    return RestClient(options, Env(), merged=merged)


def _harmless(options: Mapping[str, str]) -> dict[str, str]:
    of_catalog = {name: shown_url(text) for name, text in options.items() if name in _SENT}
    return {**harmless_options(options), **of_catalog}


def _checked_uri(uri: Any) -> str:
    if not isinstance(uri, str) or not uri.strip():
        raise UsageError("the REST catalog needs the option 'uri', the address of its server")
    address = uri.strip()
    if not address.startswith(("http://", "https://")):
        address = f"http://{address}"
    if any(mark in address for mark in "@?#"):
        raise OptionError(
            "option 'uri' must not contain a user, password or query: credentials are the options of 'token.provider'",
            option=URI,
        )
    if _ADDRESS.fullmatch(address) is None:
        raise OptionError("option 'uri' is not the address of a server, such as https://host:port", option=URI)
    return address.removesuffix("/")


def _headers(options: Mapping[str, str]) -> dict[str, str]:
    found = {"User-Agent": "paimon_py"}
    for name, text in options.items():
        if name.startswith(HEADER) and len(name) > len(HEADER):
            header = name[len(HEADER) :]
            if "\r" in text or "\n" in text or not (header.isascii() and header.isprintable()):
                raise OptionError(f"option {name!r} is not a header: one line of text", option=name)
            found[header] = text
    return found


def _encode_part(part: str) -> str:
    """A part of a path, encoded as in Java."""
    return quote_plus(part, safe="*").replace("~", "%7E")
