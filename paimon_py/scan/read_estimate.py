"""The expected work of reading splits, as a value."""

from __future__ import annotations

import msgspec

from paimon_py.formats.parts import Parts


class ReadEstimate(msgspec.Struct, frozen=True):
    """The expected work of reading a split, from indexes and footers.

    `index_files` and `index_rows`: files, and rows of all files, that indexes skip. `parts`: the row groups or stripes
    of every file that will be opened.
    """

    index_files: int
    index_rows: int
    parts: tuple[Parts, ...]
