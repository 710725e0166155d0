"""One finding about a table, as a value."""

from __future__ import annotations

import msgspec

from paimon_py.html import AsPage

PROBLEM, WARNING, NOTE = "problem", "warning", "note"
SEVERITIES = (PROBLEM, WARNING, NOTE)
"""Rows are or will be wrong or unreadable; it is costly or gets worse; worth knowing."""


def bucket_label(partition: str, bucket: int) -> str:
    """The label of a bucket in findings; `partition`: its directory below the table, "" without partition keys."""
    return "/".join(part for part in (partition, f"bucket-{bucket}") if part)


class Finding(AsPage, msgspec.Struct, frozen=True, kw_only=True):
    """A present or developing problem of a table.

    Attributes:
        code: a stable name, such as "small-files", for programs.
        severity: "problem" (rows cannot be read, or may become wrong), "warning" (costly, or getting worse) or "note".
        message: what was found, in one sentence.
        figure: the number behind the finding, None if there is none.
        option: the table option that controls it, None if there is none.
        mend: the call that repairs it.
        places: the worst examples: files, buckets, tags, …
    """

    code: str
    severity: str
    message: str
    figure: float | None = None
    option: str | None = None
    mend: str
    places: tuple[str, ...] = ()
