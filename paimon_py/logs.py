"""The loggers of paimon_py, one for each topic, below the logger "paimon_py"; and its warnings.

They are silent until a program configures logging: `logging.basicConfig(level="INFO")` shows all of them, and
`logging.getLogger("paimon_py.commits").setLevel("WARNING")` quiets one. Messages contain no secrets, and no values of
rows except those of partitions, which name directories.

Source: docs/decisions/0027-logging.md.
"""

from __future__ import annotations

import logging
import sys
import warnings
from typing import Protocol

from paimon_py.errors import PaimonWarning

GENERAL = logging.getLogger("paimon_py")
"""Warnings that are also issued as Python warnings."""

COMMITS = logging.getLogger("paimon_py.commits")
"""INFO: published snapshots, lost races, rollbacks. WARNING: conflicts, commits given up, unknown
outcomes."""

RETRIES = logging.getLogger("paimon_py.retries")
"""WARNING: calls of a store that are repeated."""

COMPACTIONS = logging.getLogger("paimon_py.compactions")
"""INFO: compacted buckets, and compactions that other commits invalidated."""

SPILLS = logging.getLogger("paimon_py.spills")
"""INFO: rows written to local disk because memory is short."""

EXPIRY = logging.getLogger("paimon_py.expiry")
"""INFO: expired snapshots, changelogs, tags and partitions, and deleted orphans."""

GENERAL.addHandler(logging.NullHandler())


class LogPlace(Protocol):
    """The table of a log message."""

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

    Cost: a small mapping for each message, whether it is shown or not; messages are rare.
    """
    of_place = {} if place is None else {"paimon_path": place.path, "paimon_branch": place.branch}
    return {**of_place, **{f"paimon_{name}": value for name, value in values.items()}}


def warn(message: str) -> None:
    """Log and warn, at the line of the caller outside the package.

    Raises: PaimonWarning if warnings are errors.
    """
    GENERAL.warning(message)
    warnings.warn(message, PaimonWarning, stacklevel=_frames_inside() + 1)


def _frames_inside() -> int:
    """The number of frames of the package between here and its caller."""
    frame, count = sys._getframe(1), 0
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "paimon_py":
        frame, count = frame.f_back, count + 1
    return count
