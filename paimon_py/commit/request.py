"""The options of a commit, checked before anything is read or written.

Everything here is stored in a snapshot file, which every reader of the table must be able to read from then on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from paimon_py.commit.conflicts import Conflict
from paimon_py.commit.overwrite import Overwrite
from paimon_py.commit.state import State
from paimon_py.errors import UsageError
from paimon_py.spec.bounds import is_long
from paimon_py.spec.commit_label import NO_LABEL, CommitLabel, is_text
from paimon_py.spec.snapshot import RESERVED_PROPERTIES


class CommitRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The options of a commit.

    `label`: the committing user and number. `expected_snapshot_id`: refuse if the latest snapshot is another one.
    `is_new`: the changes were made for this very commit, so they cannot have been committed before. `check_files`: the
    changes come from another process, so check that their files exist. `check`: checks before every attempt whether the
    written rows still follow from the latest state. `spares_waiting`: an overwrite keeps rows in the postpone bucket.
    `upgrades`: new files of an overwrite are moved to the top level even if the option `overwrite-upgrade` is off.
    `same_rows`: the overwrite only moves the rows that it replaces to other files, and changes none.

    Raises:
        UsageError: a value that no snapshot can hold.
    """

    label: CommitLabel = NO_LABEL
    overwrite: Overwrite | None = None
    watermark: int | None = None
    properties: Mapping[str, str] | None = None
    operation: str | None = None
    expected_snapshot_id: int | None = None
    is_new: bool = False
    check_files: bool = False
    check: Callable[[State], Conflict | None] | None = None
    spares_waiting: bool = False
    upgrades: bool = False
    same_rows: bool = False

    def __post_init__(self) -> None:
        if self.watermark is not None and not is_long(self.watermark):
            raise UsageError(f"watermark must be a whole number of epoch milliseconds, not {self.watermark!r}")
        if self.properties is not None and not _is_text_mapping(self.properties):
            raise UsageError(f"properties must map strings to strings, not {self.properties!r}")
        own = [name for name in self.properties or () if name.startswith(RESERVED_PROPERTIES)]
        if own:
            raise UsageError(
                f"property {own[0]!r} cannot be set: names that begin with {RESERVED_PROPERTIES!r} are reserved for"
                " properties that paimon_py writes itself"
            )


def _is_text_mapping(value: object) -> bool:
    return isinstance(value, Mapping) and all(is_text(key) and is_text(item) for key, item in value.items())
