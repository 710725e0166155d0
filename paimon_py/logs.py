"""The loggers of paimon_py, one for each theme, below the logger "paimon_py"; and its warnings.

They are silent until a program sets logging up: `logging.basicConfig(level="INFO")` shows all of them, and
`logging.getLogger("paimon_py.commits").setLevel("WARNING")` quiets one. Texts hold no secrets, and of rows no
values but those of partitions, which name directories.

Source: docs/decisions/0027-logging.md.
"""

from __future__ import annotations

import logging
import sys
import warnings
from typing import Protocol

from paimon_py.errors import PaimonWarning

GENERAL = logging.getLogger("paimon_py")
"""Warnings that are told as Python warnings, too."""

COMMITS = logging.getLogger("paimon_py.commits")
"""INFO: snapshots that were published, races that were lost, rollbacks. WARNING: conflicts, commits given up, unknown
outcomes."""

RETRIES = logging.getLogger("paimon_py.retries")
"""WARNING: calls of a store that are tried again."""

COMPACTIONS = logging.getLogger("paimon_py.compactions")
"""INFO: buckets that were compacted, and compactions that others overtook."""

SPILLS = logging.getLogger("paimon_py.spills")
"""INFO: rows that go to local disk because memory is short."""

EXPIRY = logging.getLogger("paimon_py.expiry")
"""INFO: snapshots, changelogs, tags and partitions that went, and orphans that were deleted."""

GENERAL.addHandler(logging.NullHandler())


class LogPlace(Protocol):
    """A table that a line of the log is about."""

    @property
    def path(self) -> str:
        """Directory or URL."""
        ...

    @property
    def branch(self) -> str:
        """The branch, "main" for the table itself."""
        ...


def fields(place: LogPlace | None, **values: object) -> dict[str, object]:
    """Fields of a log record, each an attribute of the record: `paimon_path`, `paimon_branch`, `paimon_snapshot_id`.

    Cost: a small mapping for each line, whether the line is shown or not; lines are rare.
    """
    of_place = {} if place is None else {"paimon_path": place.path, "paimon_branch": place.branch}
    return {**of_place, **{f"paimon_{name}": value for name, value in values.items()}}


def warn(message: str) -> None:
    """Log and warn, with the line of the caller outside the package.

    Raises: PaimonWarning where warnings are errors.
    """
    GENERAL.warning(message)
    warnings.warn(message, PaimonWarning, stacklevel=_frames_inside() + 1)


def _frames_inside() -> int:
    """How many frames of the package lie between here and its caller."""
    frame, count = sys._getframe(1), 0
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "paimon_py":
        frame, count = frame.f_back, count + 1
    return count
