"""What a compaction says of itself while it runs."""

from __future__ import annotations

import msgspec

from paimon_py.pages import AsPage


class CompactionProgress(AsPage, msgspec.Struct, frozen=True, kw_only=True):
    """How far a compaction has come: tasks, and the bytes and rows of their files."""

    tasks_done: int
    tasks: int
    bytes_done: int
    bytes: int
    rows_done: int
    rows: int
