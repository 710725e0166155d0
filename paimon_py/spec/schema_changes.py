"""Changes of a table's schema: what `Table.alter` takes.

A nested column is a path of names; below an ARRAY the next step is `element`, below a MAP `value`, as in
`["positions", "element", "x"]`.

Source: format.md §3.3; Java `SchemaChange`, release 2.0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import msgspec

from paimon_py.spec.shown import shown_option

Path: TypeAlias = str | Sequence[str]
"""A column, or the path to a nested one."""


class First(msgspec.Struct, frozen=True):
    """Before all other columns."""


class Last(msgspec.Struct, frozen=True):
    """After all other columns."""


class After(msgspec.Struct, frozen=True):
    """Directly after another column."""

    name: str


class Before(msgspec.Struct, frozen=True):
    """Directly before another column."""

    name: str


Position: TypeAlias = First | Last | After | Before


class AddColumn(msgspec.Struct, frozen=True):
    """A new, nullable column. Rows written before have NULL there.

    Args:
        column: the name, or the path of a nested column: `["pos", "z"]`.
        type: Paimon's text (`"DECIMAL(10, 2)"`), a type of Arrow or of paimon_py.
        comment: what the column means.
        position: `First()`, `Last()`, `After(name)` or `Before(name)`; None: last.
    """

    column: Path
    type: Any
    comment: str | None = None
    position: Position | None = None


class RenameColumn(msgspec.Struct, frozen=True):
    """Another name for a column; options that name it follow."""

    column: Path
    name: str


class DropColumn(msgspec.Struct, frozen=True):
    """No longer have a column; its data stay in old files, unread."""

    column: Path


class UpdateColumnType(msgspec.Struct, frozen=True):
    """Another type; old files are cast when read, as Java casts.

    Args:
        column: the name, or the path of a nested column.
        type: Paimon's text, a type of Arrow or of paimon_py.
        keep_nullability: whether the column keeps its NOT NULL, whatever the new type says.
        allow_narrowing: whether the type may be one that does not keep every value.
    """

    column: Path
    type: Any
    keep_nullability: bool = False
    allow_narrowing: bool = False


class UpdateColumnNullability(msgspec.Struct, frozen=True):
    """Allow or forbid NULL."""

    column: Path
    nullable: bool


class UpdateColumnPosition(msgspec.Struct, frozen=True):
    """Move a top-level column."""

    column: str
    position: Position


class UpdateColumnComment(msgspec.Struct, frozen=True):
    """Set the comment of a column, None to remove it."""

    column: Path
    comment: str | None


class UpdateColumnDefault(msgspec.Struct, frozen=True):
    """Set the default value of a column as text, None to remove it. Rows that exist are not touched."""

    column: Path
    default: str | None


class SetOption(msgspec.Struct, frozen=True):
    """Set a table option."""

    name: str
    value: str

    def __repr__(self) -> str:
        return f"SetOption({self.name!r}, {shown_option(self.name, self.value)!r})"


class RemoveOption(msgspec.Struct, frozen=True):
    """Let a table option have its default again."""

    name: str


class UpdateComment(msgspec.Struct, frozen=True):
    """Set the comment of the table, None to remove it."""

    comment: str | None


SchemaChange: TypeAlias = (
    AddColumn
    | RenameColumn
    | DropColumn
    | UpdateColumnType
    | UpdateColumnNullability
    | UpdateColumnPosition
    | UpdateColumnComment
    | UpdateColumnDefault
    | SetOption
    | RemoveOption
    | UpdateComment
)
