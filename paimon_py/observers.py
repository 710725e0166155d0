"""Observers: functions of a program that are called with what happened to a table, once it has happened.

An observer that fails changes nothing about that: its error becomes a text, which the caller warns of and puts into
its result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol, runtime_checkable

from paimon_py.errors import UsageError
from paimon_py.logs import GENERAL
from paimon_py.spec.events import TableEvent

Observer = Callable[[TableEvent], object]


@runtime_checkable
class StoreMeter(Protocol):
    """An observer that is told of calls to stores, too: of tables that are opened after it was registered."""

    def count_call(self, operation: str, seconds: float, size_bytes: int, outcome: str) -> None:
        """One call: which, how long it took, how many bytes it moved, and `ok`, `missing`, `transient` or `error`."""


class Observers:
    """The observers of a catalog, in the order in which they were registered. Can be used from several threads."""

    __slots__ = ("_functions", "_meters")

    def __init__(self, functions: Iterable[Observer] = ()) -> None:
        """Raises: UsageError for what cannot be called."""
        self._functions: tuple[Observer, ...] = ()
        self._meters: tuple[StoreMeter, ...] = ()
        for function in functions:
            self.register(function)

    def __bool__(self) -> bool:
        return bool(self._functions)

    def register(self, observer: Observer) -> None:
        """Call an observer from now on; one that is registered already is called once.

        Raises: UsageError for what cannot be called.
        """
        if not callable(observer):
            raise UsageError(f"an observer is a function of one event, such as print, not {observer!r}")
        if observer not in self._functions:
            self._functions = (*self._functions, observer)
            self._meters = _meters_of(self._functions)

    def remove(self, observer: Observer) -> bool:
        """Call an observer no more. Returns: whether it was registered."""
        known = self._functions
        self._functions = tuple(function for function in known if function != observer)
        self._meters = _meters_of(self._functions)
        return len(known) != len(self._functions)

    @property
    def has_meters(self) -> bool:
        """Whether an observer wants to be told of calls to stores."""
        return bool(self._meters)

    def count_call(self, operation: str, seconds: float, size_bytes: int, outcome: str) -> None:
        """Tell the meters of one call to a store; see `StoreMeter.count_call`."""
        for meter in self._meters:
            try:
                meter.count_call(operation, seconds, size_bytes, outcome)
            except Exception as error:  # noqa: BLE001 - foreign code: what came of the call stands
                self._meters = tuple(one for one in self._meters if one is not meter)
                GENERAL.warning("%s failed and is told of no more calls: %s", type(meter).__name__, error)

    def report(self, event: TableEvent) -> tuple[str, ...]:
        """Call all observers with an event, one after the other; what went wrong, one text for each that failed."""
        failed = []
        for observer in self._functions:
            try:
                observer(event)
            except Exception as error:  # noqa: BLE001 - foreign code: what happened to the table stands
                shown = f"{type(error).__name__}: {error}"
                failed.append(f"the observer {_name(observer)} failed on the event {event.kind!r}: {shown}")
        return tuple(failed)

    def report_failure(self, event: TableEvent) -> None:
        """Do as `report` does where the caller raises an error of its own: what went wrong is logged alone."""
        for text in self.report(event):
            GENERAL.warning("%s: %s", event.path, text)


def _meters_of(functions: Iterable[object]) -> tuple[StoreMeter, ...]:
    return tuple(one for one in functions if isinstance(one, StoreMeter))


def _name(observer: Observer) -> str:
    return getattr(observer, "__qualname__", None) or type(observer).__name__
