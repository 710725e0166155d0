"""A store that fails at one chosen call, and a loop that lets every call of an operation fail in turn."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any, BinaryIO, Literal, TypeVar, cast

import msgspec

from paimon_py.errors import PaimonError, StorageError, StorageUnknownError
from paimon_py.storage.store import FileStatus, ListFrom, Store, page_lister

T = TypeVar("T")

Mode = Literal["before", "after", "lost", "die", "die_after", "short"]
MODES: tuple[Mode, ...] = ("before", "after", "lost", "die", "die_after", "short")
"""The effect at the chosen call.

before: nothing happened, StorageError. after: it happened, StorageError. lost: it happened, StorageUnknownError.
die, die_after: the process ends before or after the effect (`SimulatedCrash`). short: a stream's write stores half of
its bytes and fails; tried on streams only.
"""

_READS = ("get", "list", "list_from", "stat", "open_read")
"""Verbs without an effect: before and after are the same."""


class SimulatedCrash(BaseException):
    """A simulated end of the process: no clean-up may run, and every later call of the store fails the same way."""


class FaultStore:
    """Forwards every verb, but call number `fail_at` (from 1) fails in `mode`; 0 never fails.

    Every verb is a call, and so are write and close of a file being written. With `repeat` the next `repeat − 1` calls
    fail in the same mode, as during an outage of the store.

    Attributes:
        count: the number of calls so far.
        log: (verb, path) of each call.
    """

    def __init__(self, store: Store, fail_at: int = 0, mode: Mode = "before", *, repeat: int = 1) -> None:
        self.store = store
        self.fail_at = fail_at
        self.mode: Mode = mode
        self.repeat = repeat
        self.count = 0
        self.log: list[tuple[str, str]] = []
        self.dead = False
        self._opened: list[BinaryIO] = []  # so that the garbage collector does not close files left open

    @property
    def failed(self) -> bool:
        """Whether the fault was reached."""
        return 0 < self.fail_at <= self.count

    def get(self, path: str) -> bytes:
        return self._call("get", path, lambda: self.store.get(path))

    def page_lister(self) -> ListFrom | None:
        """See `page_lister`."""
        lists = page_lister(self.store)
        if lists is None:
            return None
        return lambda directory, start: self._call("list_from", start, lambda: lists(directory, start))

    def put_new(self, path: str, data: bytes, *, within: str | None = None) -> bool:
        return self._call("put_new", path, lambda: self.store.put_new(path, data, within=within))

    def require_new(self, directory: str) -> None:
        self.store.require_new(directory)

    def put(self, path: str, data: bytes, *, within: str | None = None) -> None:
        self._call("put", path, lambda: self.store.put(path, data, within=within))

    def list(self, directory: str) -> list[FileStatus]:
        return self._call("list", directory, lambda: self.store.list(directory))

    def stat(self, path: str) -> FileStatus | None:
        return self._call("stat", path, lambda: self.store.stat(path))

    def delete(self, path: str) -> None:
        self._call("delete", path, lambda: self.store.delete(path))

    def delete_tree(self, directory: str) -> None:
        self._call("delete_tree", directory, lambda: self.store.delete_tree(directory))

    def open_read(self, path: str) -> BinaryIO:
        return self._call("open_read", path, lambda: self.store.open_read(path))

    def open_write(self, path: str, *, within: str | None = None) -> BinaryIO:
        file = self._call("open_write", path, lambda: self.store.open_write(path, within=within))
        self._opened.append(file)
        return cast(BinaryIO, _FaultFile(self, file, path))

    def make_directory(self, path: str) -> None:
        self._call("make_directory", path, lambda: self.store.make_directory(path))

    def remove_directory(self, path: str) -> bool:
        return self._call("remove_directory", path, lambda: self.store.remove_directory(path))

    def rename_directory(self, source: str, target: str) -> None:
        self._call("rename_directory", source, lambda: self.store.rename_directory(source, target))

    def _call(
        self, verb: str, path: str, action: Callable[[], T], *, shortened: Callable[[], object] | None = None
    ) -> T:
        if self.dead:
            raise SimulatedCrash(f"{verb} {path} after the crash")
        self.count += 1
        self.log.append((verb, path))
        if not self.fail_at <= self.count < self.fail_at + self.repeat or self.fail_at == 0:
            return action()
        where = f"fault at call {self.count}, {verb} {path}, {self.mode}"
        if self.mode == "die":
            self.dead = True
            raise SimulatedCrash(where)
        if self.mode in ("after", "lost", "die_after"):
            action()
        elif self.mode == "short" and shortened is not None:
            shortened()
        if self.mode == "die_after":
            self.dead = True
            raise SimulatedCrash(where)
        if self.mode == "lost":
            raise StorageUnknownError(where, path=path, operation=verb, transient=True)
        raise StorageError(where, path=path, operation=verb, transient=True)


class _FaultFile(io.RawIOBase):
    def __init__(self, faults: FaultStore, file: BinaryIO, path: str) -> None:
        super().__init__()
        self._faults = faults
        self._file = file
        self._path = path

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        block = bytes(data)
        half = block[: len(block) // 2]
        return self._faults._call(
            "write", self._path, lambda: self._file.write(block), shortened=lambda: self._file.write(half)
        )

    def tell(self) -> int:
        return self._file.tell()

    def close(self) -> None:
        if self.closed or self._faults.dead:
            return
        super().close()
        self._faults._call("close", self._path, self._file.close, shortened=self._file.close)


class Fault(msgspec.Struct, frozen=True):
    """One run of an operation with one fault; `str(fault)` describes it."""

    call: int
    mode: Mode
    verb: str
    path: str

    def __str__(self) -> str:
        return f"call {self.call} ({self.verb} {self.path.rsplit('/', 2)[-1]}), {self.mode}"


class Outcome(msgspec.Struct, frozen=True):
    """The outcome of an operation with a fault: its result, its error, or the crash."""

    fault: Fault
    result: object = None
    error: BaseException | None = None

    @property
    def crashed(self) -> bool:
        """Whether the simulated process ended."""
        return isinstance(self.error, SimulatedCrash)


def for_each_fault(
    build: Callable[[], Store],
    operation: Callable[[Store], object],
    check: Callable[[Store, Outcome], None],
    *,
    modes: tuple[Mode, ...] = MODES,
    repeat: int = 1,
    share: Callable[[int, Mode], bool] | None = None,
) -> int:
    """Run an operation once for every store call it makes and every mode, fail that call, and check the state after it.

    Calls that only read fail "before" alone, not "after" too: that would be the same run.
    An error outside our family ends the loop: that is a finding too.

    Args:
        build: creates a store in the state before the operation, for every run.
        operation: the operation to test, called with the failing store.
        check: called with the underlying store and the outcome; raises AssertionError if something is wrong.
        modes: the modes of failure.
        repeat: the number of consecutive calls that fail.
        share: selects the runs, by call number and mode; None: all runs.

    Returns:
        The number of runs.
    """
    runs = 0
    for mode in modes:
        for call, (verb, path) in enumerate(_calls_of(build(), operation, mode), start=1):
            if not _differs(mode, verb):
                continue
            if share is not None and not share(call, mode):
                continue
            store = build()
            faults = FaultStore(store, call, mode, repeat=repeat)
            result, error = _run(operation, faults)
            assert faults.failed, f"call {call} is not reached: the operation is not the same in every run"
            outcome = Outcome(fault=Fault(call, mode, verb, path), result=result, error=error)
            try:
                check(store, outcome)
            except AssertionError as wrong:
                raise AssertionError(
                    f"{outcome.fault}: {wrong} (the operation ended with {error!r}, {result!r})"
                ) from wrong
            runs += 1
    return runs


def _differs(mode: Mode, verb: str) -> bool:
    """Whether a run differs from those of other modes."""
    if mode == "short":
        return verb in ("write", "close")
    return verb not in _READS or mode not in ("after", "die_after")


def _calls_of(store: Store, operation: Callable[[Store], object], mode: Mode) -> list[tuple[str, str]]:
    """The calls of an operation without faults."""
    faults = FaultStore(store, 0, mode)
    _run(operation, faults)
    return faults.log


def _run(operation: Callable[[Store], object], store: FaultStore) -> tuple[object, BaseException | None]:
    try:
        return operation(store), None
    except (PaimonError, SimulatedCrash) as error:
        return None, error
