"""The loggers of paimon_py: one for each theme, below the logger "paimon_py".

They are silent until a program sets logging up: `logging.basicConfig(level="INFO")` shows all of them, and
`logging.getLogger("paimon_py.commits").setLevel("WARNING")` quiets one. Texts hold no secrets, and of rows no
values but those of partitions, which name directories.

Source: docs/decisions/0027-logging.md.
"""

from __future__ import annotations

import logging

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
