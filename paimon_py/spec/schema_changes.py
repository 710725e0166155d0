"""Changes of a table's schema: what `Table.alter` takes.

A nested column is a path of names; below an ARRAY the next step is `element`, below a MAP `value`, as in
`["positions", "element", "x"]`.

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
    """Before all other columns."""


@explains_arguments
@dataclass(frozen=True)
class Last:
    """After all other columns."""


@explains_arguments
@dataclass(frozen=True)
class After:
    """Directly after another column."""

    name: str


@explains_arguments
@dataclass(frozen=True)
class Before:
    """Directly before another column."""

    name: str


Position: TypeAlias = First | Last | After | Before


@explains_arguments
@dataclass(frozen=True)
class AddColumn:
    """A new, nullable column. Rows written before have NULL there.

    Args:
        column: the name, or the path of a nested column: `["pos", "z"]`.
        type: Paimon's text (`"DECIMAL(10, 2)"`), a type of Arrow or of paimon_py.
        comment: what the column means.
        position: `First()`, `Last()`, `After(name)` or `Before(name)`; None: last.
        default: what rows get that are written without the column, as a text; as `UpdateColumnDefault` beside this.
    """

    column: Path
    type: Any
    comment: str | None = None
    position: Position | None = None
    default: str | None = field(default=None, kw_only=True)


@explains_arguments
@dataclass(frozen=True)
class RenameColumn:
    """Another name for a column; options that name it follow."""

    column: Path
    name: str


@explains_arguments
@dataclass(frozen=True)
class DropColumn:
    """No longer have a column; its data stay in old files, unread."""

    column: Path


@explains_arguments
@dataclass(frozen=True)
class UpdateColumnType:
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


@explains_arguments
@dataclass(frozen=True)
class UpdateColumnNullability:
    """Allow or forbid NULL."""

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
    """Set the comment of a column, None to remove it."""

    column: Path
    comment: str | None


@explains_arguments
@dataclass(frozen=True)
class UpdateColumnDefault:
    """Set the default value of a column as text, None to remove it. Rows that exist are not touched."""

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
    """Let a table option have its default again."""

    name: str


@explains_arguments
@dataclass(frozen=True)
class UpdateComment:
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
