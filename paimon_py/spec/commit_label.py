"""The user and identifier of a commit. Pure.

Source: docs/reliability.md §3 (h); Java `commitUser`, `commitIdentifier`.
"""

from __future__ import annotations

import msgspec

from paimon_py.arguments import value_repr
from paimon_py.errors import UsageError
from paimon_py.spec.bounds import is_long
from paimon_py.spec.snapshot import BATCH_COMMIT_IDENTIFIER


class CommitLabel(msgspec.Struct, frozen=True):
    """The user and identifier of a commit, which make the call repeatable.

    Attributes:
        user: the name; None: a generated name.
        identifier: the number of the commit, increasing per user; None for a batch commit, which has no number.

    Raises:
        UsageError: a value that a snapshot cannot store, or an identifier without a user.
    """

    user: str | None = None
    identifier: int | None = None

    def __post_init__(self) -> None:
        if self.user is not None and not (is_text(self.user) and self.user):
            raise UsageError(f"user must be a string that names the job that commits, not {value_repr(self.user)}")
        if self.identifier is None:
            return
        if not (is_long(self.identifier) and self.identifier >= 0):
            raise UsageError(f"identifier must be a whole number from 0 to 2**63-2, not {value_repr(self.identifier)}")
        if self.identifier == BATCH_COMMIT_IDENTIFIER:
            raise UsageError("identifier 2**63-1 marks batch commits; leave it out for one, or take a smaller number")
        if self.user is None:
            raise UsageError(
                "identifier=… needs user=…: an identifier counts the commits of one user, such as user='daily-load'"
            )


NO_LABEL = CommitLabel()
"""The label of a commit for which the caller passed none."""


def is_text(value: object) -> bool:
    """Whether a value is a string that can be encoded as UTF-8 (no lone surrogates)."""
    return isinstance(value, str) and not any("\ud800" <= letter <= "\udfff" for letter in value)
