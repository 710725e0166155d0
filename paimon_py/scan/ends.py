"""The resolved ends of a range of changes, from `table.changes` or from incremental options.

Source: Java `AbstractDataTableScan.createIncrementalStartingScanner`.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from paimon_py.errors import UsageError
from paimon_py.spec.options import Options
from paimon_py.spec.schema import TableSchema
from paimon_py.spec.snapshot import Snapshot

Mode = Literal["delta", "changelog", "diff", "auto"]
MODES = ("auto", "delta", "changelog", "diff")


class Ends(msgspec.Struct, frozen=True, kw_only=True):
    """The changes after snapshot `since` up to and including `last`.

    Attributes:
        since: the id of the first end; 0 for the empty table.
        start: the snapshot of the first end; None if it is 0, or if only the changes matter, not the state.
        last: the snapshot of the last end.
        mode: the source of changes: files added by APPEND snapshots, changelog files, the difference of both states, or
            ("auto") for each snapshot its changelog or its added files, by the table's options at the time.
        removals: whether a diff reports deleted keys. If not, a diff is Java's: files that both states have are
            skipped, rows have their stored kinds, and deleted keys are not reported.
        of_step: whether a diff is a step of a stream: it first reports the old values of changed rows, as −U, and
            includes rows that have not been compacted, since steps return rows when they are written.
        refuses_none: whether to refuse to read changelogs if the table produced none for rows of the range.
        of_call: whether the diff is that of one call: it includes rows that have not been compacted, and both states
            are read with the options of that call. Otherwise each state is read with its own options.
        now: the last end is the latest state, which is read with the table's current options.
        refuses_removals: whether to refuse commits that delete rows from a table without a primary key, and to read
            others whatever their kind.
        own: the snapshots in the range whose changes count; None: all.
    """

    since: int
    start: Snapshot | None = None
    last: Snapshot
    mode: Mode
    removals: bool = True
    of_step: bool = False
    refuses_none: bool = False
    of_call: bool = False
    now: bool = False
    refuses_removals: bool = False
    own: tuple[Snapshot, ...] | None = None


def require_mode(mode: object) -> Mode:
    """The mode that a caller passes.

    Raises: UsageError for an invalid mode.
    """
    if not isinstance(mode, str) or mode not in MODES:
        raise UsageError(f"mode is one of {', '.join(map(repr, MODES))}, not {mode!r}")
    return mode  # type: ignore[return-value]


def mode_of(mode: str, schema: TableSchema) -> Mode:
    """The source of changes for incremental options: "auto" uses the changelog if the table produces one, as in Java.

    Raises: UsageError for an invalid mode.
    """
    found = require_mode(mode)
    if found == "auto":
        return "delta" if Options(schema.options).get_enum("changelog-producer") == "none" else "changelog"
    return found
