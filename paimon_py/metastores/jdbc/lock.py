"""The lock of a JDBC catalog: a row that exists while the lock is held, and that other processes delete when it is
stale.

Java uses the same rows. A row contains its lifetime, `lock-acquire-timeout`; the clock is the database's. A lock is
released only if it is still the one that was acquired: a holder that exceeded the time does not release the lock of
the next holder.

Source: Java `JdbcCatalogLock`, `JdbcUtils.acquire`, release 2.0.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from paimon_py.env import Env
from paimon_py.errors import LockTimeoutError, OptionError, StorageError
from paimon_py.metastores.jdbc import sql
from paimon_py.metastores.jdbc.database import SqlDatabase, TakenError
from paimon_py.metastores.metastore import TableName
from paimon_py.metastores.options import LockOptions
from paimon_py.spec.layout import MAIN_BRANCH

_FIRST_SLEEP = 0.05
KEY_LENGTH = "lock-key-max-length"


class JdbcLock:
    """The lock of one table."""

    __slots__ = ("_catalog_key", "_database", "_env", "_key_length", "_name", "_times")

    def __init__(
        self, database: SqlDatabase, catalog_key: str, name: TableName, times: LockOptions, key_length: int, env: Env
    ) -> None:
        self._database = database
        self._catalog_key = catalog_key
        self._name = name
        self._times = times
        self._key_length = key_length
        self._env = env

    @contextmanager
    def hold(self, branch: str) -> Iterator[float]:
        """See `Lock.hold`. Cost: three statements to acquire the lock, one to release it."""
        lock = self._id(branch)
        until, since = self._acquire(lock)
        try:
            yield until
        finally:
            self._release(lock, since)

    def _id(self, branch: str) -> str:
        table = self._name.table if branch == MAIN_BRANCH else f"{self._name.table}$branch_{branch}"
        found = f"{self._catalog_key}.{self._name.database}.{table}"
        if len(found) > self._key_length:
            raise OptionError(
                f"the name of the lock {found!r} is longer than {KEY_LENGTH} = {self._key_length}", option=KEY_LENGTH
            )
        return found

    def _acquire(self, lock: str) -> tuple[float, Any]:
        """The time until which the lock is held, and the start time in its row."""
        clock, seconds = self._env.clock, int(self._times.acquire_timeout)
        began, sleep = clock.elapsed(), _FIRST_SLEEP
        while True:
            before = clock.elapsed()
            if self._insert(lock, seconds):
                rows = self._database.rows(sql.SEE_LOCK, lock=lock)
                if rows:
                    return before + seconds, rows[0][0]
            if clock.elapsed() - began > self._times.acquire_timeout:
                raise LockTimeoutError(
                    f"other processes held the lock {lock!r} of {self._database!r} for {clock.elapsed() - began:.0f} s"
                    " (lock-acquire-timeout); nothing was done. Try again, or find the holder of the lock in"
                    f" {sql.LOCKS}",
                    table=str(self._name),
                )
            sleep = min(2 * sleep, self._times.longest_sleep)
            clock.sleep(sleep)

    def _insert(self, lock: str, seconds: int) -> bool:
        try:
            self._database.write((sql.drop_stale_lock(self._database.dialect), {"lock": lock}))
            self._database.write((sql.TAKE_LOCK, {"lock": lock, "seconds": seconds}))
        except TakenError:
            return False
        except StorageError as error:
            if error.transient:
                return False
            raise
        return True

    def _release(self, lock: str, since: Any) -> None:
        try:
            self._database.write((sql.GIVE_LOCK, {"lock": lock, "since": since}))
        except StorageError as error:
            from paimon_py.logs import warn

            seconds = int(self._times.acquire_timeout)
            warn(f"the lock {lock!r} could not be released, and blocks others for up to {seconds} s: {error}")

    def __reduce__(self) -> tuple[object, ...]:
        return _reopen, (self._database, self._catalog_key, self._name, self._times, self._key_length)


def _reopen(
    database: SqlDatabase, catalog_key: str, name: TableName, times: LockOptions, key_length: int
) -> JdbcLock:
    return JdbcLock(database, catalog_key, name, times, key_length, Env())
