"""A digest of the events of a step, which does not depend on their order, and can be added up from parts."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import msgspec

from paimon_py.cdc.event import Event

_BYTES = 16
_ENCODER = msgspec.msgpack.Encoder()


class EventsDigest(msgspec.Struct, frozen=True):
    """The number of events, and the sum of their hashes."""

    count: int = 0
    total: bytes = bytes(_BYTES)

    @classmethod
    def of(cls, events: Iterable[Event]) -> EventsDigest:
        """The digest of events."""
        count = total = 0
        for event in events:
            content = _ENCODER.encode((event.topic, event.key, event.value))
            total += int.from_bytes(hashlib.sha256(content).digest()[:_BYTES], "big")
            count += 1
        return cls(count, _sum_bytes(total))

    def plus(self, other: EventsDigest) -> EventsDigest:
        """The digest of the events of both."""
        total = int.from_bytes(self.total, "big") + int.from_bytes(other.total, "big")
        return EventsDigest(self.count + other.count, _sum_bytes(total))

    def __str__(self) -> str:
        return f"{self.count} events, {self.total.hex()}"


def _sum_bytes(total: int) -> bytes:
    return (total % (1 << 8 * _BYTES)).to_bytes(_BYTES, "big")
