"""The two ends of a span of changes, found: what `table.changes` and incremental options come down to.

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
    """The changes after snapshot `since` up to and with `last`.

    Attributes:
        since: id of the first end; 0 for the empty table.
        start: the snapshot of the first end; None where it is 0, or only the changes count, not the state.
        last: the snapshot of the last end.
        mode: where the changes are read: files added by APPEND snapshots, changelog files, both states, or of each
            snapshot ("auto") its changelog or what it added, by the options that the table had then.
        removals: whether a diff tells keys that are gone. If not, a diff is what Java gives: files that both states
            have are left out, rows have their stored kinds, and keys that are gone do not come.
        old_rows: whether a diff tells, before it tells what changed, which rows were there: −U with the old values.
        refuses_none: whether to refuse changelogs where the table made none for rows of the span.
        of_call: whether a diff tells what one call did: also of rows that no compaction has seen, and both states are
            read under the options of that call. Else each is read under its own.
        now: the last end is the latest state, which is read as the table is now.
        refuses_removals: whether to refuse commits that take rows away from a table without a primary key, and read
            others whatever their kind is.
        own: the snapshots of the span whose changes count; None: all.
    """

    since: int
    start: Snapshot | None = None
    last: Snapshot
    mode: Mode
    removals: bool = True
    old_rows: bool = False
    refuses_none: bool = False
    of_call: bool = False
    now: bool = False
    refuses_removals: bool = False
    own: tuple[Snapshot, ...] | None = None


def require_mode(mode: object) -> Mode:
    """A mode that a caller names.

    Raises: UsageError for a mode that is none.
    """
    if not isinstance(mode, str) or mode not in MODES:
        raise UsageError(f"mode is one of {', '.join(map(repr, MODES))}, not {mode!r}")
    return mode  # type: ignore[return-value]


def mode_of(mode: str, schema: TableSchema) -> Mode:
    """Where incremental options read changes: "auto" takes the changelog where the table makes one, as in Java.

    Raises: UsageError for a mode that is none.
    """
    found = require_mode(mode)
    if found == "auto":
        return "delta" if Options(schema.options).get_enum("changelog-producer") == "none" else "changelog"
    return found
