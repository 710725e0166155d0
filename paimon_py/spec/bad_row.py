"""A row that does not fit the table, as it is reported.

Source: none
"""

from __future__ import annotations

import msgspec


class BadRow(msgspec.Struct, frozen=True, kw_only=True):
    """A row of a file that does not fit the table.

    Attributes:
        file: path of the file.
        line: the line of the file at which the row begins, from 1.
        column: name of the first column that does not fit; None for a row with more or fewer values than columns.
        value: the string in that column; None for NULL.
        problem: what is wrong.
        record: the row as written in the file.
    """

    file: str
    line: int
    column: str | None
    value: str | None
    problem: str
    record: str
