"""One thing that a doctor found, as a value."""

from __future__ import annotations

import msgspec

from paimon_py.html import AsPage

PROBLEM, WARNING, NOTE = "problem", "warning", "note"
SEVERITIES = (PROBLEM, WARNING, NOTE)
"""Rows are or will be wrong or unreadable; it gets worse or costs much; worth knowing."""


def bucket_label(partition: str, bucket: int) -> str:
    """A bucket as findings name it; `partition`: its directory below the table, "" without partition keys."""
    return "/".join(part for part in (partition, f"bucket-{bucket}") if part)


class Finding(AsPage, msgspec.Struct, frozen=True, kw_only=True):
    """What is wrong with a table, or gets worse.

    Attributes:
        code: a stable name, such as "small-files", for programs.
        severity: "problem" (rows cannot be read, or may become wrong), "warning" (costs much, or gets worse) or "note".
        message: what was found, in one sentence.
        figure: the number behind the finding, None if there is none.
        option: the table option that decides about the matter, None if there is none.
        mend: the call that mends the matter.
        places: the worst examples: files, buckets, tags, …
    """

    code: str
    severity: str
    message: str
    figure: float | None = None
    option: str | None = None
    mend: str
    places: tuple[str, ...] = ()
