"""Options that ask for indexes over the values of primary-key tables.

Source: format.md §28; Java `CoreOptions`, release 2.0 and main of August 2026.
"""

from __future__ import annotations

from paimon_py.spec.options import Options

SORTED_KINDS = ("btree", "bitmap", "multivalue")
"""Indexes without which a search reads all rows: a compaction here takes them away."""

SEARCH_KINDS = ("vector", "full-text")
"""Indexes without which a search of Java leaves rows out, as its default is."""


def index_columns(options: Options, kinds: tuple[str, ...] = (*SORTED_KINDS, *SEARCH_KINDS)) -> str | None:
    """The first option of these kinds that names columns; None without one."""
    return next((name for kind in kinds if options.find_str(name := f"pk-{kind}.index.columns")), None)
