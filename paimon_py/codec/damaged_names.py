"""Detects damaged names in metadata: a known name with one flipped bit, not a newer name."""

from __future__ import annotations

from collections.abc import Collection

from paimon_py.errors import CorruptionError


def check_names(names: Collection[str], known: Collection[str], path: str, offset: int | None = None) -> None:
    """Refuse a name that equals a missing known name except for one flipped bit.

    Cost: none if all names are known.
    Raises: CorruptionError
    """
    strange = [name for name in names if name not in known]
    for name in strange:
        lost = [other for other in known if other not in names and _is_one_bit_off(name, other)]
        if lost:
            raise CorruptionError(f"{path}: {name!r} is {lost[0]!r} with a flipped bit", path=path, offset=offset)


def _is_one_bit_off(text: str, other: str) -> bool:
    one, two = text.encode("utf-8", "replace"), other.encode("utf-8", "replace")
    return len(one) == len(two) and (int.from_bytes(one, "big") ^ int.from_bytes(two, "big")).bit_count() == 1
