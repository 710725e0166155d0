"""The lock of a Hive catalog: an exclusive lock on the table in the metastore, which Java's catalog uses too.

The metastore releases a lock without heartbeat for longer than its timeout (`hive.txn.timeout`, 300 s), which ends the
lock of a killed holder; if the metastore does not, waiters release such a lock. Every check of a requested lock counts
as a heartbeat, including the last one, with which the lock is acquired: no other client can get the lock before that
heartbeat times out. A request whose answer was lost is found by its mark.

Source: Java `HiveCatalogLock`, release 2.0.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager

from paimon_py.env import Env
from paimon_py.errors import LockTimeoutError, PaimonError, StorageError, StorageUnknownError
from paimon_py.logs import GENERAL, warn
from paimon_py.metastores.hive import thrift
from paimon_py.metastores.hive.calls import NO_SUCH_LOCK
from paimon_py.metastores.hive.connection import Client, MetastoreFailedError, MissingCallError, RefusedError
from paimon_py.metastores.hive.thrift import I32, I64, STRUCT, Struct
from paimon_py.metastores.metastore import TableName
from paimon_py.metastores.options import LockOptions
from paimon_py.spec.layout import MAIN_BRANCH
from paimon_py.spec.options import parse_duration

ACQUIRED, WAITING = 1, 2
EXCLUSIVE, OF_TABLE = 3, 2
_LOOK_PART = 0.25
_FIRST_SLEEP = 0.1
_UNLOCK_ATTEMPTS = 3
_PART = 0.05
"""The pause until the next check, as a share of the time waited so far. Locks are granted in the order of requests, so
that a sleeping first waiter blocks all others: with pauses that double, as in Java, a queue gets slower and slower."""
_SERVER_TIMEOUT = "hive.txn.timeout"
_DEFAULT_TIMEOUT_SECONDS = 300.0
_SAFE_PART = 0.5
"""The share of the server's timeout that a holder relies on: clocks run at different speeds, and answers take time."""


class HiveLock:
    """The lock of one table. Can be pickled."""

    __slots__ = ("_client", "_env", "_name", "_times")

    def __init__(self, client: Client, name: TableName, times: LockOptions, env: Env) -> None:
        self._client = client
        self._name = name
        self._times = times
        self._env = env

    @contextmanager
    def hold(self, branch: str) -> Iterator[float]:
        """See `Lock.hold`. Cost: one call to acquire the lock and one to release it; one more the first time."""
        table = self._name.table if branch == MAIN_BRANCH else f"{self._name.table}$branch_{branch}"
        timeout = _parse_seconds(self._client.server_setting(_SERVER_TIMEOUT))
        lock, since = self._acquire(table, timeout)
        try:
            yield since + timeout * _SAFE_PART
        finally:
            self._release(lock, table)

    def _acquire(self, table: str, timeout: float) -> tuple[int, float]:
        """The lock's id, and the time at which the metastore certainly received its last heartbeat."""
        clock, looked = self._env.clock, -timeout
        began = since = clock.elapsed()
        answer = self._request(table)
        lock = thrift.number(answer, 1) or 0
        try:
            while thrift.number(answer, 2) == WAITING:
                waited = clock.elapsed() - began
                if waited >= self._times.acquire_timeout:
                    break
                clock.sleep(min(max(_FIRST_SLEEP, _PART * waited), self._times.longest_sleep))
                since = clock.elapsed()
                answer = self._check_lock(lock, table)
                if thrift.number(answer, 2) == WAITING and since - looked > timeout * _LOOK_PART:
                    looked = since
                    self._release_stale(table, lock, timeout)
        except PaimonError:
            self._release(lock, table)
            raise
        if thrift.number(answer, 2) == ACQUIRED:
            return lock, since
        who = self._holder(table)
        self._release(lock, table)
        raise LockTimeoutError(
            f"the lock of {self._name.database}.{table} in {self._client!r} could not be acquired in"
            f" {clock.elapsed() - began:.0f} s (lock-acquire-timeout); nothing was done. {who}; try again, or stop the"
            " holder: the metastore releases the lock of a dead holder after its hive.txn.timeout",
            table=str(self._name),
        )

    def _request(self, table: str) -> Struct:
        mark = f"paimon_py-{self._env.ids.uuid()}"
        component: Struct = {
            1: (I32, EXCLUSIVE),
            2: (I32, OF_TABLE),
            3: thrift.of_text(self._name.database),
            4: thrift.of_text(table),
        }
        request: Struct = {
            1: thrift.of_structs([component]),
            3: thrift.of_text(self._client.settings.user),
            4: thrift.of_text(socket.gethostname()),
            5: thrift.of_text(mark),
        }
        try:
            return self._answer("lock", (STRUCT, request), table)
        except StorageError as failed:
            # the metastore may have queued the request, which would block others
            found = self._find_own(table, mark)
            if found is not None:
                return {1: (I64, found), 2: (I32, WAITING)}
            if isinstance(failed, StorageUnknownError):
                raise StorageError(
                    f"the metastore did not report whether it granted the lock of {self._name.database}.{table};"
                    " nothing was done. If it did, the lock expires after the metastore's hive.txn.timeout. Try again",
                    path=str(self._name),
                    operation="lock",
                    transient=True,
                ) from failed
            raise

    def _check_lock(self, lock: int, table: str) -> Struct:
        """The state of a request; if the metastore cannot check it, it still counts as waiting."""
        try:
            return self._answer("check_lock", (STRUCT, {1: (I64, lock)}), table)
        except StorageError as error:
            if isinstance(error.__cause__, MetastoreFailedError):
                return {1: (I64, lock), 2: (I32, WAITING)}
            raise

    def _answer(self, call: str, request: tuple[int, object], table: str) -> Struct:
        try:
            answer = self._client.call(call, request, target=f"{self._name.database}.{table}")
        except (RefusedError, MetastoreFailedError, MissingCallError) as error:
            raise StorageError(
                f"the metastore refused a lock of {self._name.database}.{table}: {error}; nothing was done. A metastore"
                " without locks needs 'lock.enabled' = 'false', which is safe on stores that can create exclusively",
                path=str(self._name),
                operation=call,
            ) from error
        return answer if isinstance(answer, dict) else {}

    def _locks(self, table: str) -> list[Struct]:
        request: Struct = {1: thrift.of_text(self._name.database), 2: thrift.of_text(table)}
        answer = self._client.call("show_locks", (STRUCT, request), target=table)
        return thrift.structs(answer if isinstance(answer, dict) else {}, 1)

    def _find_own(self, table: str, mark: str) -> int | None:
        """The lock with the given mark."""
        try:
            locks = self._locks(table)
        except (PaimonError, MissingCallError):
            return None
        return next((thrift.number(lock, 1) for lock in locks if thrift.text(lock, 13) == mark), None)

    def _release_stale(self, table: str, mine: int, timeout: float) -> None:
        """Release the locks and requests of others whose last heartbeat is older than the metastore's timeout.

        A metastore without housekeeping never releases them. Times are those of the metastore: the last heartbeats of
        others are compared with that of this request, which is current.
        """
        try:
            heard = {thrift.number(lock, 1): lock for lock in self._locks(table)}
        except (PaimonError, MissingCallError):
            return
        now = thrift.number(heard.pop(mine, {}), 8)
        for number, lock in heard.items():
            last = thrift.number(lock, 8)
            if now is None or last is None or number is None or thrift.number(lock, 7) or now - last <= timeout * 1000:
                continue
            GENERAL.warning("lock %d of %s.%s is stale and is released", number, self._name.database, table)
            try:
                self._client.call("unlock", (STRUCT, {1: (I64, number)}), target=f"{self._name.database}.{table}")
            except (PaimonError, RefusedError) as error:
                GENERAL.warning("the stale lock %d could not be released: %s", number, error)

    def _holder(self, table: str) -> str:
        try:
            locks = self._locks(table)
        except (PaimonError, MissingCallError):
            locks = []
        for lock in locks:
            if thrift.number(lock, 5) == ACQUIRED:
                return f"{thrift.text(lock, 10)} on {thrift.text(lock, 11)} holds lock {thrift.number(lock, 1)}"
        return "SHOW LOCKS in Hive shows the holder of the lock"

    def _release(self, lock: int, table: str) -> None:
        if lock <= 0:
            return
        failed: Exception | None = None
        for attempt in range(_UNLOCK_ATTEMPTS):
            if attempt:
                self._env.clock.sleep(_FIRST_SLEEP * 4**attempt)
            try:
                self._client.call("unlock", (STRUCT, {1: (I64, lock)}), target=f"{self._name.database}.{table}")
                return
            except RefusedError as error:
                if error.name == NO_SUCH_LOCK:
                    return
                failed = error
            except PaimonError as error:
                failed = error
        self._warn(lock, table, failed)

    def _warn(self, lock: int, table: str, error: Exception | None) -> None:
        warn(
            f"lock {lock} of {self._name.database}.{table} could not be released: {error}. The work under the"
            " lock is done; others wait until the metastore releases the lock (hive.txn.timeout)"
        )

    def __reduce__(self) -> tuple[object, ...]:
        return _reopen, (self._client, self._name, self._times)


def _parse_seconds(text: str) -> float:
    """Parse a Hive duration: seconds if there is no unit."""
    text = text.strip()
    nanos = parse_duration(f"{text} s" if text.isdecimal() else text)
    return _DEFAULT_TIMEOUT_SECONDS if not nanos else nanos / 1e9


def _reopen(client: Client, name: TableName, times: LockOptions) -> HiveLock:
    return HiveLock(client, name, times, Env())
