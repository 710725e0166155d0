"""What reading splits will take and leave, as a value."""

from __future__ import annotations

import msgspec

from paimon_py.formats.parts import Parts


class Foreseen(msgspec.Struct, frozen=True):
    """What reading a split takes and leaves, as far as indexes and footers tell.

    `index_files` and `index_rows`: files, and rows of all files, that indexes leave out. `parts`: the row groups or
    stripes of every file that will be opened.
    """

    index_files: int
    index_rows: int
    parts: tuple[Parts, ...]
