"""Who commits, and under which number. Pure.

Source: docs/reliability.md §3 (h); Java `commitUser`, `commitIdentifier`.
"""

from __future__ import annotations

import msgspec

from paimon_py.errors import UsageError
from paimon_py.spec.bounds import is_long
from paimon_py.spec.snapshot import BATCH_COMMIT_IDENTIFIER


class CommitLabel(msgspec.Struct, frozen=True):
    """Who commits, and under which number, so that the same call can be repeated.

    Attributes:
        user: None takes one that stands for the files of the commit.
        identifier: counts the commits of a user; None for a batch commit, which cannot be repeated by its number.

    Raises:
        UsageError: a value that no snapshot can hold, or a number without a user.
    """

    user: str | None = None
    identifier: int | None = None

    def __post_init__(self) -> None:
        if self.user is not None and not (is_text(self.user) and self.user):
            raise UsageError(f"user must be a text that names who commits, not {self.user!r}")
        if self.identifier is None:
            return
        if not (is_long(self.identifier) and self.identifier >= 0):
            raise UsageError(f"identifier must be a whole number from 0 to 2**63-2, not {self.identifier!r}")
        if self.identifier == BATCH_COMMIT_IDENTIFIER:
            raise UsageError("identifier 2**63-1 marks batch commits; leave it out for one, or take a smaller number")
        if self.user is None:
            raise UsageError(
                "identifier=… needs user=…: an identifier counts the commits of one user, such as user='daily-load'"
            )


NO_LABEL = CommitLabel()
"""The label of a commit of which the caller said nothing."""


def is_text(value: object) -> bool:
    """Whether a value is a text that can be written as UTF-8, which lone surrogates cannot."""
    return isinstance(value, str) and not any("\ud800" <= letter <= "\udfff" for letter in value)
