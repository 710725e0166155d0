"""Observers: functions of a program that are called with events of a table, after they have happened.

A failing observer does not affect the operation: its error becomes a string, which the caller issues as a warning and
puts into its result.
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
    """An observer that also receives calls to stores: of tables that are opened after it was registered."""

    def count_call(self, operation: str, seconds: float, size_bytes: int, outcome: str) -> None:
        """Count one call: its verb, duration, bytes moved, and the outcome `ok`, `missing`, `transient` or `error`."""


class Observers:
    """The observers of a catalog, in the order in which they were registered. Can be used from several threads."""

    __slots__ = ("_functions", "_meters")

    def __init__(self, functions: Iterable[Observer] = ()) -> None:
        """Raises: UsageError for values that are not callable."""
        self._functions: tuple[Observer, ...] = ()
        self._meters: tuple[StoreMeter, ...] = ()
        for function in functions:
            self.register(function)

    def __bool__(self) -> bool:
        return bool(self._functions)

    def register(self, observer: Observer) -> None:
        """Register an observer; one that is already registered is called once.

        Raises: UsageError for values that are not callable.
        """
        if not callable(observer):
            raise UsageError(f"an observer is a function of one event, such as print, not {observer!r}")
        if observer not in self._functions:
            self._functions = (*self._functions, observer)
            self._meters = _meters_of(self._functions)

    def remove(self, observer: Observer) -> bool:
        """Unregister an observer. Returns: whether it was registered."""
        known = self._functions
        self._functions = tuple(function for function in known if function != observer)
        self._meters = _meters_of(self._functions)
        return len(known) != len(self._functions)

    @property
    def has_meters(self) -> bool:
        """Whether an observer counts calls to stores."""
        return bool(self._meters)

    def count_call(self, operation: str, seconds: float, size_bytes: int, outcome: str) -> None:
        """Report one call to a store to the meters; see `StoreMeter.count_call`."""
        for meter in self._meters:
            try:
                meter.count_call(operation, seconds, size_bytes, outcome)
            except Exception as error:  # noqa: BLE001 - foreign code: the outcome of the call stands
                self._meters = tuple(one for one in self._meters if one is not meter)
                GENERAL.warning("%s failed and receives no more calls: %s", type(meter).__name__, error)

    def report(self, event: TableEvent) -> tuple[str, ...]:
        """Call all observers with an event, one after the other; returns a message for each that failed."""
        failed = []
        for observer in self._functions:
            try:
                observer(event)
            except Exception as error:  # noqa: BLE001 - foreign code: what happened to the table stands
                shown = f"{type(error).__name__}: {error}"
                failed.append(f"the observer {_name(observer)} failed on the event {event.kind!r}: {shown}")
        return tuple(failed)

    def report_and_log(self, event: TableEvent) -> None:
        """Call all observers with an event, as `report`, where no result can carry messages: they are logged."""
        for text in self.report(event):
            GENERAL.warning("%s: %s", event.path, text)


def _meters_of(functions: Iterable[object]) -> tuple[StoreMeter, ...]:
    return tuple(one for one in functions if isinstance(one, StoreMeter))


def _name(observer: Observer) -> str:
    return getattr(observer, "__qualname__", None) or type(observer).__name__
