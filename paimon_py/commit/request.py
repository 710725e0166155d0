"""How to commit: what a caller may say about it, checked before anything is read or written.

Everything here ends up in a snapshot file, which every reader of the table has to understand from then on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from paimon_py.commit.conflicts import Conflict
from paimon_py.commit.overwrite import Overwrite
from paimon_py.commit.state import State
from paimon_py.errors import UsageError
from paimon_py.spec.bounds import is_long
from paimon_py.spec.snapshot import BATCH_COMMIT_IDENTIFIER


class CommitRequest(msgspec.Struct, frozen=True, kw_only=True):
    """How to commit.

    `user`: None takes one that stands for these very files. `identifier`: counts the commits of a user, None is a batch
    commit. `expected_snapshot_id`: refuse if the latest snapshot is another one. `is_new`: the changes
    were made for this very commit, so nobody can have committed them. `check_files`: the changes come from
    elsewhere, so look whether their files are there. `check`: asked of
    the latest state before every attempt whether what was written still follows from it. `spares_waiting`: an
    overwrite leaves rows alone that wait for their bucket. `upgrades`: new files of an overwrite go to the top level
    though the option `overwrite-upgrade` is off.

    Raises:
        UsageError: a value that no snapshot can hold.
    """

    user: str | None = None
    identifier: int | None = None
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

    def __post_init__(self) -> None:
        if self.user is not None and not (_is_text(self.user) and self.user):
            raise UsageError(f"user must be a text that names who commits, not {self.user!r}")
        if self.identifier is not None and not (is_long(self.identifier) and self.identifier >= 0):
            raise UsageError(f"identifier must be a whole number from 0 to 2**63-2, not {self.identifier!r}")
        if self.identifier == BATCH_COMMIT_IDENTIFIER:
            raise UsageError("identifier 2**63-1 marks batch commits; leave it out for one, or take a smaller number")
        if self.watermark is not None and not is_long(self.watermark):
            raise UsageError(f"watermark must be a whole number of epoch milliseconds, not {self.watermark!r}")
        if self.properties is not None and not _is_text_mapping(self.properties):
            raise UsageError(f"properties must map texts to texts, not {self.properties!r}")


def _is_text(value: object) -> bool:
    """Whether a text can be written as UTF-8, which lone surrogates cannot."""
    return isinstance(value, str) and not any("\ud800" <= letter <= "\udfff" for letter in value)


def _is_text_mapping(value: object) -> bool:
    return isinstance(value, Mapping) and all(_is_text(key) and _is_text(item) for key, item in value.items())
