"""A metastore inside the process that speaks the calls a Hive catalog uses, and fails as it is told.

The answers and refusals are those seen of Hive 3.1 and 4.0; `tests/interop/test_hive_catalogs.py` asks real ones.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from copy import deepcopy

from paimon_py.metastores.hive import thrift
from paimon_py.metastores.hive.calls import ALREADY_EXISTS, CALLS, INVALID_OPERATION, NO_SUCH_LOCK, NO_SUCH_OBJECT
from paimon_py.metastores.hive.thrift import BOOL, I32, I64, STRUCT, MessageReader

ONLY_IN_4 = {"get_table_req", "get_table_objects_by_name_req"}
NOT_IN_4 = {"get_table", "get_table_objects_by_name"}


class Refuse(Exception):
    def __init__(self, name, message):
        self.name, self.message = name, message


class StubMetastore:
    """Faults by call: `reset` (before anything is done), `lost` (done, no answer), `half` (done, half an answer),
    `garbage`, `failed` (MetaException) and `broken` (an exception that the call has not)."""

    def __init__(self, version=4, now=lambda: 0.0, databases=("default",)):
        self.version = version
        self.now = now
        self.lock_timeout = 300.0
        self.forgets = True
        self.databases = {name: {1: thrift.of_text(name), 3: thrift.of_text("file:/nowhere")} for name in databases}
        self.tables, self.partitions, self.locks = {}, {}, {}
        self.next_lock = 1
        self.calls, self.faults = [], {}
        self.refused_changes = False
        self.down = False
        self._guard = threading.Lock()
        self._server = socket.create_server(("127.0.0.1", 0))
        self._open = []
        self._accepting = threading.Thread(target=self._accept, daemon=True)
        self._accepting.start()

    @property
    def uri(self):
        return f"thrift://127.0.0.1:{self._server.getsockname()[1]}"

    def close(self):
        if not self.down:
            self.down = True
            self._server.shutdown(socket.SHUT_RDWR)  # wakes the thread that accepts
            self._accepting.join()
            self._server.close()
            self.drop_connections()

    def drop_connections(self):
        """As a restart of the server does."""
        for one in list(self._open):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def fail(self, call, *faults):
        self.faults.setdefault(call, []).extend(faults)

    def table(self, name):
        return self.tables[tuple(name.split("."))]

    def parameters(self, name):
        return thrift.mapping(self.table(name), 9)

    def columns(self, name):
        return [(thrift.text(c, 1), thrift.text(c, 2)) for c in thrift.items(thrift.inner(self.table(name), 7), 1)]

    def partition_values(self, name):
        return sorted(list(values) for values in self.partitions.get(tuple(name.split(".")), {}))

    # -- the wire ---------------------------------------------------------------------------------------------------

    def _accept(self):
        while True:
            try:
                connection, _ = self._server.accept()
            except OSError:
                return
            self._open.append(connection)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection):
        reader = connection.makefile("rb")

        def take(size):
            data = reader.read(size)
            if len(data) != size:
                raise EOFError
            return data

        try:
            while not self.down:
                asked = MessageReader(take).read()
                answer, goes_on = self._answer(asked)
                connection.sendall(answer)
                if not goes_on:
                    break
        except (OSError, EOFError, ValueError):
            pass
        finally:
            reader.close()
            connection.close()
            if connection in self._open:
                self._open.remove(connection)

    def _answer(self, asked):
        with self._guard:
            self.calls.append(asked.name)
            fault = self.faults[asked.name].pop(0) if self.faults.get(asked.name) else None
            if fault == "reset":
                return b"", False
            if fault == "garbage":
                return b"HTTP/1.1 400 Bad Request\r\n\r\n", False
            missing = ONLY_IN_4 if self.version < 3 else NOT_IN_4 if self.version >= 4 else ()
            if asked.name in missing:
                body = {1: thrift.of_text(f"Invalid method name: '{asked.name}'"), 2: (I32, thrift.UNKNOWN_METHOD)}
                return thrift.message(thrift.EXCEPTION, asked.name, asked.number, body), True
            try:
                if fault == "broken" or (fault == "failed" and "MetaException" not in CALLS[asked.name].errors.values()):
                    raise Refuse("broken", "")
                if fault == "failed":
                    raise Refuse("MetaException", "the database of the metastore is away")
                values = {place: value for place, (_, value) in asked.body.items()}
                found = getattr(self, "_" + asked.name)(values)
                body = {} if found is None else {0: found}
            except Refuse as refusal:
                if refusal.name == "broken":
                    body = {1: thrift.of_text(f"Internal error processing {asked.name}"), 2: (I32, 6)}
                    return thrift.message(thrift.EXCEPTION, asked.name, asked.number, body), True
                place = next(field for field, name in CALLS[asked.name].errors.items() if name == refusal.name)
                body = {place: (STRUCT, {1: thrift.of_text(refusal.message)})}
            answer = thrift.message(thrift.REPLY, asked.name, asked.number, body)
            return {"lost": (b"", False), "half": (answer[: len(answer) // 2], False)}.get(fault, (answer, True))

    # -- calls ------------------------------------------------------------------------------------------------------

    def _set_ugi(self, values):
        return thrift.of_texts([])

    def _get_config_value(self, values):
        return thrift.of_text(f"{self.lock_timeout:.0f}s" if values[1] == b"hive.txn.timeout" else "")

    def _get_all_databases(self, values):
        return thrift.of_texts(self.databases)

    def _get_database(self, values):
        name = values[1].decode()
        if name not in self.databases:
            raise Refuse(NO_SUCH_OBJECT, name)
        return STRUCT, self.databases[name]

    def _create_database(self, values):
        name = thrift.text(values[1], 1)
        if name in self.databases:
            raise Refuse(ALREADY_EXISTS, name)
        self.databases[name] = values[1]

    def _drop_database(self, values):
        name = values[1].decode()
        self._get_database(values)
        if any(database == name for database, _ in self.tables):
            raise Refuse(INVALID_OPERATION, f"Database {name} is not empty. One or more tables exist.")
        del self.databases[name]

    def _get_all_tables(self, values):
        return thrift.of_texts(table for database, table in self.tables if database == values[1].decode())

    def _get_table(self, values):
        key = (values[1].decode(), values[2].decode())
        if key not in self.tables:
            raise Refuse(NO_SUCH_OBJECT, f"hive.{key[0]}.{key[1]} table not found")
        return STRUCT, deepcopy(self.tables[key])

    def _get_table_req(self, values):
        request = {place: value for place, (_, value) in values[1].items()}
        return STRUCT, {1: self._get_table(request)}

    def _get_table_objects_by_name(self, values):
        keys = [(values[1].decode(), name.decode()) for name in values[2].items]
        return thrift.of_structs(self.tables[key] for key in keys if key in self.tables)

    def _get_table_objects_by_name_req(self, values):
        request = {place: value for place, (_, value) in values[1].items()}
        return STRUCT, {1: self._get_table_objects_by_name(request)}

    def _create_table(self, values):
        record = values[1]
        key = (thrift.text(record, 2), thrift.text(record, 1))
        if key in self.tables:
            raise Refuse(ALREADY_EXISTS, f"Table hive.{key[0]}.{key[1]} already exists")
        if self.version >= 4 and thrift.text(record, 12) == "MANAGED_TABLE":
            told = {"EXTERNAL": "TRUE", "TRANSLATED_TO_EXTERNAL": "TRUE", "external.table.purge": "TRUE"}
            record = {**record, 12: thrift.of_text("EXTERNAL_TABLE")}
            record[9] = thrift.of_mapping({**thrift.mapping(record, 9), **told})
        self.tables[key] = {**record, 99: thrift.of_text("of a later version")}

    def _drop_table(self, values):
        self._get_table(values)
        key = (values[1].decode(), values[2].decode())
        self.partitions.pop(key, None)
        del self.tables[key]

    def _alter_table_with_environment_context(self, values):
        key, record = (values[1].decode(), values[2].decode()), values[3]
        to = (thrift.text(record, 2), thrift.text(record, 1))
        if key not in self.tables:
            raise Refuse(INVALID_OPERATION, f"table {key} doesn't exist")
        if to != key and to in self.tables:
            raise Refuse(INVALID_OPERATION, f"new table {to} already exists")
        if self.refused_changes:
            raise Refuse(INVALID_OPERATION, "The following columns have types incompatible with the existing columns")
        del self.tables[key]
        self.tables[to] = record
        if key in self.partitions:
            self.partitions[to] = self.partitions.pop(key)

    def _add_partitions_req(self, values):
        request = values[1]
        key = (thrift.text(request, 1), thrift.text(request, 2))
        there = self.partitions.setdefault(key, {})
        for record in thrift.items(request, 3):
            there.setdefault(tuple(thrift.texts(record, 1)), record)
        return STRUCT, {}

    def _get_partitions(self, values):
        return thrift.of_structs(self.partitions.get((values[1].decode(), values[2].decode()), {}).values())

    def _alter_partitions(self, values):
        there = self.partitions[values[1].decode(), values[2].decode()]
        for record in values[3].items:
            there[tuple(thrift.texts(record, 1))] = record

    def _drop_partition(self, values):
        there = self.partitions.get((values[1].decode(), values[2].decode()), {})
        if there.pop(tuple(value.decode() for value in values[3].items), None) is None:
            raise Refuse(NO_SUCH_OBJECT, "partition not found")
        return BOOL, True

    # -- locks ------------------------------------------------------------------------------------------------------

    def _lock(self, values):
        request = values[1]
        component = thrift.items(request, 1)[0]
        number = self.next_lock
        self.next_lock += 1
        self.locks[number] = {
            "of": (thrift.text(component, 3), thrift.text(component, 4)), "heard": self.now(),
            "who": (thrift.text(request, 3), thrift.text(request, 4), thrift.text(request, 5) or "Unknown"),
        }  # fmt: skip
        return self._state(number)

    def _state(self, number):
        self._forget()
        if number not in self.locks:
            raise Refuse(NO_SUCH_LOCK, f"No such lock lockid:{number}")
        lock = self.locks[number]
        lock["heard"] = self.now()
        first = min(other for other, one in self.locks.items() if one["of"] == lock["of"])
        return STRUCT, {1: (I64, number), 2: (I32, 1 if first == number else 2)}

    def _forget(self):
        for number, lock in list(self.locks.items()):
            if self.forgets and self.now() - lock["heard"] > self.lock_timeout:
                del self.locks[number]

    def _check_lock(self, values):
        return self._state(thrift.number(values[1], 1))

    def _unlock(self, values):
        self._forget()
        if self.locks.pop(thrift.number(values[1], 1), None) is None:
            raise Refuse(NO_SUCH_LOCK, "No such lock")

    def _show_locks(self, values):
        of = (thrift.text(values[1], 1), thrift.text(values[1], 2))
        found = []
        for number, lock in self.locks.items():
            if lock["of"] == of:
                user, host, mark = lock["who"]
                first = min(other for other, one in self.locks.items() if one["of"] == of)
                found.append({
                    1: (I64, number), 8: (I64, int(lock["heard"] * 1000)), 5: (I32, 1 if first == number else 2), 10: thrift.of_text(user),
                    11: thrift.of_text(host), 13: thrift.of_text(mark),
                })  # fmt: skip
        return STRUCT, {1: thrift.of_structs(found)}
