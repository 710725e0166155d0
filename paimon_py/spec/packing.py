"""Packs items into bins, in order. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import TypeVar

T = TypeVar("T")


def pack(items: Iterable[T], weight: Callable[[T], int], target: int) -> Iterator[list[T]]:
    """Pack items into bins in order; a bin is closed before the item that would overfill it."""
    packed: list[T] = []
    total = 0
    for item in items:
        size = weight(item)
        if packed and total + size > target:
            yield packed
            packed, total = [], 0
        packed.append(item)
        total += size
    if packed:
        yield packed


def shares(items: Sequence[T], count: int) -> list[Sequence[T]]:
    """Neighbouring items in at most `count` groups of nearly the same number, none empty."""
    count = max(1, min(count, len(items)))
    ends = [len(items) * number // count for number in range(count + 1)]
    return [items[start:end] for start, end in pairwise(ends) if end > start]
