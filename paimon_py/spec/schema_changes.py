"""Schema changes: the arguments of `Table.alter`.

A nested column is a path of names; the step into an ARRAY is `element`, into a MAP `value`, as in `["positions",
"element", "x"]`.

Source: format.md §3.3; Java `SchemaChange`, release 2.0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from paimon_py.api_hints import explains_arguments
from paimon_py.spec.redact import shown_option

Path: TypeAlias = str | Sequence[str]
"""A column, or the path to a nested one."""


@explains_arguments
@dataclass(frozen=True)
class First:
    """The position before all other columns."""


@explains_arguments
@dataclass(frozen=True)
class Last:
    """The position after all other columns."""


@explains_arguments
@dataclass(frozen=True)
class After:
    """The position directly after another column."""

    name: str


@explains_arguments
@dataclass(frozen=True)
class Before:
    """The position directly before another column."""

    name: str


Position: TypeAlias = First | Last | After | Before


@explains_arguments
@dataclass(frozen=True)
class AddColumn:
    """Add a nullable column. Existing rows have NULL in it.

    Args:
        column: the name, or the path of a nested column: `["pos", "z"]`.
        type: a type in Paimon's syntax (`"DECIMAL(10, 2)"`), an Arrow type, or a type of paimon_py.
        comment: a description of the column.
        position: `First()`, `Last()`, `After(name)` or `Before(name)`; None: last.
        default: the value for rows that are written without the column, as a string; equals an `UpdateColumnDefault`.
    """

    column: Path
    type: Any
    comment: str | None = None
    position: Position | None = None
    default: str | None = field(default=None, kw_only=True)


@explains_arguments
@dataclass(frozen=True)
class RenameColumn:
    """Rename a column; options that name it are updated."""

    column: Path
    name: str


@explains_arguments
@dataclass(frozen=True)
class DropColumn:
    """Drop a column; its data stay in old files but are no longer read."""

    column: Path


@explains_arguments
@dataclass(frozen=True)
class UpdateColumnType:
    """Change the type of a column; old files are cast when they are read, as in Java.

    Args:
        column: the name, or the path of a nested column.
        type: a type in Paimon's syntax, an Arrow type, or a type of paimon_py.
        keep_nullability: keep the column's NOT NULL or nullability, ignoring that of the new type.
        allow_narrowing: allow a type that does not preserve every value.
    """

    column: Path
    type: Any
    keep_nullability: bool = False
    allow_narrowing: bool = False


@explains_arguments
@dataclass(frozen=True)
class UpdateColumnNullability:
    """Allow or forbid NULL in a column."""

    column: Path
    nullable: bool


@explains_arguments
@dataclass(frozen=True)
class UpdateColumnPosition:
    """Move a top-level column."""

    column: str
    position: Position


@explains_arguments
@dataclass(frozen=True)
class UpdateColumnComment:
    """Set the comment of a column; None removes it."""

    column: Path
    comment: str | None


@explains_arguments
@dataclass(frozen=True)
class UpdateColumnDefault:
    """Set the default value of a column as a string; None removes it. Existing rows are not changed."""

    column: Path
    default: str | None


@explains_arguments
@dataclass(frozen=True)
class SetOption:
    """Set a table option."""

    name: str
    value: str

    def __repr__(self) -> str:
        return f"SetOption({self.name!r}, {shown_option(self.name, self.value)!r})"


@explains_arguments
@dataclass(frozen=True)
class RemoveOption:
    """Reset a table option to its default."""

    name: str


@explains_arguments
@dataclass(frozen=True)
class UpdateComment:
    """Set the comment of the table; None removes it."""

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
