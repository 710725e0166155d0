"""Connections to a Hive Metastore: several addresses, failover, and handling of lost answers.

A call that was not sent completely was certainly not executed, and is sent to the next server. A call whose answer was
lost may have been executed: a read is repeated; a change raises `StorageUnknownError`, and its caller checks the
current state.
"""

from __future__ import annotations

import select
import socket
import struct
from typing import Any
from urllib.parse import urlsplit

import msgspec

from paimon_py.env import Env
from paimon_py.errors import OptionError, StorageError, StorageUnknownError
from paimon_py.metastores.hive import thrift
from paimon_py.metastores.hive.calls import CALLS
from paimon_py.metastores.hive.thrift import Message, MessageReader, Struct
from paimon_py.spec.redact import shown_text

DEFAULT_PORT = 9083
_ROUNDS = 2
_WAIT_SECONDS = 1.0
_LONGEST_CONNECT_SECONDS = 20.0


class Address(msgspec.Struct, frozen=True):
    """Host and port of a server."""

    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"thrift://{host}:{self.port}"


class Settings(msgspec.Struct, frozen=True):
    """The connection settings of the servers, in the order to try them."""

    addresses: tuple[Address, ...]
    user: str
    timeout_seconds: float
    pool_size: int
    idle_seconds: float


class RefusedError(Exception):
    """The server answered with an exception: nothing was changed.

    Attributes:
        name: the name of the exception in Hive (`NoSuchObjectException`).
        message: the server's message.
    """

    def __init__(self, name: str, message: str) -> None:
        super().__init__(f"{name}: {message}")
        self.name = name
        self.message = message


def parse_addresses(uris: str) -> tuple[Address, ...]:
    """The servers of the option `uri`: `thrift://host:port`, separated by commas.

    Raises: OptionError
    """
    found = []
    for text in (part.strip() for part in uris.split(",")):
        try:
            parts = urlsplit(text)
            host, port = parts.hostname, parts.port
        except ValueError:
            host = port = None
            parts = urlsplit("")
        if parts.scheme.lower() != "thrift" or not host or "@" in parts.netloc or parts.path not in ("", "/"):
            raise OptionError(
                "option 'uri' of a Hive catalog lists its servers, as in 'thrift://a:9083,thrift://b:9083'; one of"
                " the given ones is invalid",
                option="uri",
            )
        found.append(Address(host, port or DEFAULT_PORT))
    return tuple(found)


class Client:
    """Calls a metastore. Thread-safe; keeps a few idle connections per process."""

    __slots__ = ("_env", "_first", "_idle", "_missing", "_server_settings", "settings")

    def __init__(self, settings: Settings, env: Env) -> None:
        self.settings = settings
        self._env = env
        self._idle: list[tuple[int, float, _Connection]] = []
        self._first = 0
        self._missing: set[str] = set()
        self._server_settings: dict[str, str] = {}

    def has(self, call: str) -> bool:
        """Whether no server has reported that it lacks this call."""
        return call not in self._missing

    def server_setting(self, name: str) -> str:
        """A setting of the server, empty if unknown. Cost: one call, once."""
        if name not in self._server_settings:
            try:
                value = self.call("get_config_value", thrift.of_text(name), thrift.of_text(""), target=name)
            except (RefusedError, MissingCallError, MetastoreFailedError):
                value = None
            self._server_settings[name] = value.decode("utf-8", "replace") if isinstance(value, bytes) else ""
        return self._server_settings[name]

    def call(self, name: str, *arguments: tuple[int, Any] | None, target: str = "") -> Any:
        """Call the server; arguments are fields 1, 2, … of the call, None for those that are omitted.

        Args:
            target: the object of the call, for errors.

        Returns: the result of the server, None if it is empty.

        Raises:
            RefusedError: the server refuses.
            MissingCallError: the server does not have the call.
            StorageError: no server can be reached, or the server failed; nothing was changed.
            StorageUnknownError: the answer to a change was lost.
        """
        body = {place: field for place, field in enumerate(arguments, 1) if field is not None}
        error: Exception | None = None
        for attempt in range(_ROUNDS):
            if attempt:
                self._env.clock.sleep(_WAIT_SECONDS)
            try:
                connection = self._send(name, body, fresh=attempt > 0)
            except OSError as failure:
                error = failure
                continue
            try:
                answer = connection.receive(name)
            except (OSError, EOFError, thrift.MalformedError, struct.error) as failure:
                connection.close()
                error = failure
                if CALLS[name].repeatable:
                    continue
                raise _lost_answer_error(connection.address, name, target, failure) from failure
            self._keep(connection)
            return self._result(name, answer, target)
        raise StorageError(
            f"no metastore of {', '.join(map(str, self.settings.addresses))} answered {name}: {_error_text(error)};"
            " nothing was changed. See that the option 'uri' names a Hive Metastore (its Thrift port, without SASL and"
            " TLS) that runs",
            path=target or None,
            operation=name,
            transient=True,
        ) from error

    def _send(self, name: str, body: Struct, *, fresh: bool) -> _Connection:
        """Send a call, over a new connection if `fresh`. Returns the connection on which the answer comes."""
        connection = self._connection(fresh=fresh)
        try:
            connection.send(name, body)
        except OSError:
            connection.close()
            raise
        return connection

    def _result(self, name: str, answer: Message, target: str) -> Any:
        if answer.kind == thrift.EXCEPTION:
            if thrift.number(answer.body, 2) == thrift.UNKNOWN_METHOD:
                self._missing.add(name)
                raise MissingCallError(name)
            raise self._failure(name, "", thrift.text(answer.body, 1) or "no reason given", target)
        if 0 in answer.body:
            return answer.body[0][1]
        for field, (kind, value) in answer.body.items():
            if kind == thrift.STRUCT:
                message = shown_text(thrift.text(value, 1) or "no reason given")
                if "No FileSystem for scheme" in message:
                    message += (
                        "; 'location-in-properties' = 'true' keeps locations out of sight of a metastore that cannot"
                        " reach them"
                    )
                error = CALLS[name].errors.get(field, "MetaException")
                if error == "MetaException":
                    raise self._failure(name, error, message, target)
                raise RefusedError(error, message)
        return None

    def _failure(self, name: str, error: str, message: str, target: str) -> StorageError:
        return MetastoreFailedError(
            f"the metastore failed in {name} of {target or 'this'}: {error and error + ': '}{shown_text(message)}",
            path=target or None,
            operation=name,
        )

    def _connection(self, *, fresh: bool) -> _Connection:
        """An idle connection that is still open, or a new one to the first server that accepts it."""
        process, now = self._env.ids.process(), self._env.clock.elapsed()
        while True:
            try:
                owner, since, connection = self._idle.pop()
            except IndexError:  # another thread took the last one
                break
            if owner != process:
                continue  # it belongs to the parent of a fork
            if not fresh and now - since <= self.settings.idle_seconds and connection.is_open():
                return connection
            connection.close()
        addresses = self.settings.addresses
        failure: OSError | None = None
        for step in range(len(addresses)):
            place = (self._first + step) % len(addresses)
            try:
                made = _Connection(addresses[place], self.settings.timeout_seconds)
            except OSError as error:
                failure = error
                continue
            self._first = place
            made.introduce(self.settings.user)
            return made
        raise failure or OSError("no address")

    def _keep(self, connection: _Connection) -> None:
        if len(self._idle) < self.settings.pool_size:
            self._idle.append((self._env.ids.process(), self._env.clock.elapsed(), connection))
        else:
            connection.close()

    def __del__(self) -> None:
        for _, _, connection in self._idle:
            connection.close()

    def __reduce__(self) -> tuple[object, ...]:
        return _reopen, (self.settings,)

    def __repr__(self) -> str:
        return f"Client({', '.join(map(str, self.settings.addresses))})"


class MissingCallError(Exception):
    """The server, of another version, does not have the call."""


class MetastoreFailedError(StorageError):
    """The metastore answered that the operation failed and was rolled back."""

    kind = "metastore-failed"


class _Connection:
    __slots__ = ("_number", "_reader", "_socket", "address")

    def __init__(self, address: Address, timeout_seconds: float) -> None:
        self.address = address
        connecting = min(timeout_seconds, _LONGEST_CONNECT_SECONDS)
        self._socket = socket.create_connection((address.host, address.port), connecting)
        self._socket.settimeout(timeout_seconds)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._reader = self._socket.makefile("rb")
        self._number = 0

    def introduce(self, user: str) -> None:
        """Send the user name: servers with impersonation create directories as this user.

        Raises: OSError if the server does not answer.
        """
        try:
            self.send("set_ugi", {1: thrift.of_text(user), 2: thrift.of_texts([])})
            self.receive("set_ugi")
        except (EOFError, thrift.MalformedError, struct.error) as error:
            self.close()
            raise ConnectionError(f"no Hive Metastore answers at {self.address}: {error}") from error
        except OSError:
            self.close()
            raise

    def is_open(self) -> bool:
        """Whether the server has not closed the connection; unexpected data also count as closed."""
        try:
            return not select.select([self._socket], [], [], 0)[0]
        except (OSError, ValueError):
            return False

    def send(self, name: str, body: Struct) -> None:
        self._number += 1
        self._socket.sendall(thrift.message(thrift.CALL, name, self._number, body))

    def receive(self, name: str) -> Message:
        answer = MessageReader(self._take).read()
        if answer.name != name or answer.number != self._number:
            raise thrift.MalformedError(f"the answer does not belong to {name}")
        return answer

    def _take(self, size: int) -> bytes:
        data = self._reader.read(size)
        if len(data) != size:
            raise EOFError("the connection was closed during the answer")
        return data

    def close(self) -> None:
        for part in (self._reader, self._socket):
            try:
                part.close()
            except OSError:
                continue


def _lost_answer_error(address: Address, name: str, target: str, failure: Exception) -> StorageUnknownError:
    return StorageUnknownError(
        f"the metastore at {address} did not report whether it executed {name}{f' of {target}' if target else ''}:"
        f" {_error_text(failure)}",
        path=target or None,
        operation=name,
    )


def _error_text(error: Exception | None) -> str:
    return shown_text(str(error)) or type(error).__name__


def _reopen(settings: Settings) -> Client:
    return Client(settings, Env())

