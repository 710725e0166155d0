"""Decodes events and applies routes: changes by target table, dead letters, and counts of events without a change."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from typing import Union

import msgspec

from paimon_py.cdc import canal, debezium, maxwell
from paimon_py.cdc.event import Change, Decoded, Event, InvalidEvent, NoChange
from paimon_py.cdc.routes import Routes
from paimon_py.cdc.shaping import Shaping
from paimon_py.cdc.taken import TakenChanges
from paimon_py.errors import UsageError

DECODERS: Mapping[str, Callable[[Event], Decoded]] = {
    "debezium-json": debezium.decode_parts, "canal-json": canal.decode_parts, "maxwell-json": maxwell.decode,
}  # fmt: skip

Format = Union[str, Callable[[Event], Decoded]]
"""The name of a format, or a decoder."""


class Letter(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A dead letter: the number of an event in its step, the target table, empty if unknown, and the reason."""

    number: int
    table: str
    reason: str


class SortedEvents(msgspec.Struct, frozen=True):
    """Decoded events.

    Attributes:
        taken: the changes, by target table.
        letters: the events that cannot be applied to any table.
        skipped: the number of events that change no row, by reason.
    """

    taken: dict[str, TakenChanges] = {}
    letters: list[Letter] = []
    skipped: dict[str, int] = {}


class Decoding:
    """Decodes events and applies routes to them. Can be pickled if its decoder can.

    Args:
        dead_letters: the table for dead letters, which takes no changes.
    """

    def __init__(self, format: Format, routes: Routes, dead_letters: str) -> None:
        self._format, self._routes, self._dead_letters = format, routes, dead_letters
        self._decode = format if callable(format) else DECODERS[format]
        self._shaping = Shaping(routes)
        self._target = functools.lru_cache(maxsize=4096)(routes.target)

    def __reduce__(self) -> tuple[object, ...]:
        return Decoding, (self._format, self._routes, self._dead_letters)

    @property
    def routes(self) -> Routes:
        """The routes."""
        return self._routes

    def sort(self, events: Iterable[Event], first: int = 0) -> SortedEvents:
        """Decode events, which are numbered from `first`.

        Raises: UsageError for a decoder that returns something else, a source table with the name of the table for dead
            letters, and routes that exclude a column of the key; whatever the decoder raises.
        """
        found = SortedEvents({}, [], {})
        for number, event in enumerate(events, first):
            self._sort(number, event, found)
        return found

    def _sort(self, number: int, event: Event, found: SortedEvents) -> None:
        decoded = self._decode(event)
        if type(decoded) is not Change and not isinstance(decoded, (Change, InvalidEvent, NoChange)):
            raise UsageError(
                f"a decoder makes a Change, a NoChange or an InvalidEvent of each event, not {type(decoded).__name__},"
                f" as of the one at {event.position!r} of topic {event.topic!r}"
            )
        if isinstance(decoded, InvalidEvent):
            found.letters.append(Letter(number, "", decoded.reason))
            return
        target = None if isinstance(decoded, NoChange) else self._target(decoded.table, decoded.database)
        if isinstance(decoded, NoChange) or target is None:
            reason = decoded.reason if isinstance(decoded, NoChange) else f"table {decoded.table} is not taken"
            found.skipped[reason] = found.skipped.get(reason, 0) + 1
            return
        if target == self._dead_letters:
            raise UsageError(f"table {target!r} is the one for dead letters: choose dead_letters= or another name")
        shaped = self._shaping.shape(decoded, event)
        if isinstance(shaped, InvalidEvent):
            found.letters.append(Letter(number, target, shaped.reason))
        else:
            if target not in found.taken:
                found.taken[target] = TakenChanges(target)
            found.taken[target].add(number, shaped)
