"""Sizes in bytes and counts, as users write and read them."""

from __future__ import annotations

import click

from paimon_py.spec.options import parse_size

_UNITS = ("B", "KB", "MB", "GB", "TB", "PB")


def size(text: str) -> int:
    """Parse a size: 500mb, 20 gb, 1024."""
    found = parse_size(text.strip())
    if found is None or found < 1:
        raise click.BadParameter(f"{text!r} is not a size such as 500mb or 20gb")
    return found


def size_text(size_bytes: float) -> str:
    """A size in the unit that leaves one to three digits: 3.4 MB (of 1024 KB)."""
    value, place = float(size_bytes), 0
    while value >= 999.5 and place < len(_UNITS) - 1:
        value, place = value / 1024, place + 1
    return f"{value:.0f} {_UNITS[place]}" if place == 0 or value >= 99.95 else f"{value:.1f} {_UNITS[place]}"


def count_text(count: int, what: str) -> str:
    """A count of things: 1 table, 2,000 tables."""
    return f"{count:,} {what}{'' if count == 1 else 's'}"
