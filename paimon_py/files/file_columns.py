"""The columns to read from a file, derived from its schema: the same for all files of one schema.

A small file is read in less time than these values are derived.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

from paimon_py.expr.predicate import Constant, Predicate
from paimon_py.expr.references import columns_of
from paimon_py.expr.split import translate
from paimon_py.files.evolve import Evolution
from paimon_py.files.physical import DATA_EVOLUTION, TRACKED_IDS, evolves_columns, readable_fields, stored_fields
from paimon_py.files.variant_parts import with_wanted_parts
from paimon_py.formats.base import Alike
from paimon_py.spec.schema import SYSTEM_FIELD_ID_START, TableSchema
from paimon_py.spec.types import Atomic, DataType, Field, Root

_QUESTIONS_MAX = 64


class Needed:
    """The columns that are read or used for pruning; the others may have unsupported types.

    Attributes:
        fields: these columns, in the order of the file.
        may_lack: see `ReadSettings`; `alike`: what their format keeps from one file to the next.
    """

    __slots__ = ("alike", "fields", "may_lack")

    def __init__(self, fields: list[Field], *, all_are_named: bool) -> None:
        """`all_are_named`: an entry that names the columns of its file names them all."""
        self.fields = fields
        self.may_lack = frozenset(field.name for field in fields if field.type.nullable and not all_are_named)
        self.alike = Alike()


class FilePredicate(NamedTuple):
    """A predicate on the rows of a table, and what it implies for the columns of a file.

    Attributes:
        predicate: the predicate; `reads`: its columns.
        implied: in terms of the file's columns; None if it cannot skip anything. `asks`: the columns of that.
    """

    predicate: Predicate
    reads: frozenset[str]
    implied: Predicate | None
    asks: frozenset[str]


class FileColumns:
    """The columns of files of one schema, for a reader of some of them.

    Attributes:
        fields: the columns that the files contain; `evolution`: their conversion, without constants.
        stored: see `ReadSettings`.
        user_fields: `fields` without system columns.
        evolves: whether several files may hold the columns of a row.
        asks_ids: whether row ids or the snapshots that wrote rows are read.
        may_hold_decimals: whether a column is a DECIMAL, or may contain some.
    """

    def __init__(
        self, schema: TableSchema, written: tuple[str, ...] | None, read: tuple[Field, ...], constants: frozenset[int]
    ) -> None:
        """`written`: as in `readable_fields`; `read`: the columns to read; `constants`: ids of columns that are known
        for a whole file, which files may lack.
        """
        by_id = {field.id: field for field in read}
        stored = (field for field in readable_fields(schema, written) if field.id not in constants)
        self.fields = tuple(with_wanted_parts(field, by_id.get(field.id)) for field in stored)
        self.evolution = Evolution(self.fields, read)
        self.evolves = evolves_columns(schema)
        if self.evolves:  # conditions apply to the newest values, which are read here
            self.fields = self.evolution.sources
        self.stored = stored_fields(schema, written)
        self.user_fields = tuple(field for field in self.fields if field.id < SYSTEM_FIELD_ID_START)
        self.asks_ids = not schema.primary_keys and any(field.id in TRACKED_IDS for field in read)
        self.may_hold_decimals = any(_may_hold_decimals(field.type) for field in self.fields)
        self._names_all = written is not None
        self._needed: dict[frozenset[str], Needed] = {}
        self._pushed: FilePredicate | None = None

    def push_down(self, predicate: Predicate) -> FilePredicate:
        """The condition that a predicate implies for the files; the last one is kept for the next file."""
        found = self._pushed
        if found is None or found.predicate is not predicate:
            found = self._pushed = self.find_implied(predicate)
        return found

    def find_implied(self, predicate: Predicate) -> FilePredicate:
        """The condition that a predicate implies if the values of a partition decided parts of it; not kept."""
        implied: Predicate | None = translate(predicate, self.user_fields)
        if isinstance(implied, Constant) and implied.value:
            implied = None
        asks = frozenset() if implied is None else columns_of(implied)
        return FilePredicate(predicate, columns_of(predicate), implied, asks)

    def columns_for(self, asked: frozenset[str]) -> Needed:
        """The columns to read if a predicate also needs these."""
        found = self._needed.get(asked)
        if found is None:
            names = {*self.evolution.columns, *asked}
            if len(self._needed) >= _QUESTIONS_MAX:
                self._needed.clear()
            found = Needed([field for field in self.fields if field.name in names], all_are_named=self._names_all)
            self._needed[asked] = found
        return found


def file_columns(
    schema: TableSchema, written: tuple[str, ...] | None, read: tuple[Field, ...], constants: frozenset[int]
) -> FileColumns:
    """See `FileColumns`; derived once for the files of a schema.

    Raises: CorruptionError for a column that the schema does not have.
    """
    evolves = schema.options.get(DATA_EVOLUTION)
    thin = schema.options.get("data-file.thin-mode")
    about = (schema.fields, tuple(schema.primary_keys), tuple(schema.partition_keys), evolves, thin)
    return _columns_of(_Source(about, schema), written, read, constants)


class _Source:
    """A schema, as far as columns are derived from it."""

    __slots__ = ("about", "schema")

    def __init__(self, about: tuple[object, ...], schema: TableSchema) -> None:
        self.about = about
        self.schema = schema

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Source) and other.about == self.about

    def __hash__(self) -> int:
        return hash(self.about)


@functools.lru_cache(maxsize=128)
def _columns_of(
    source: _Source, written: tuple[str, ...] | None, read: tuple[Field, ...], constants: frozenset[int]
) -> FileColumns:
    return FileColumns(source.schema, written, read, constants)


def _may_hold_decimals(kind: DataType) -> bool:
    return not isinstance(kind, Atomic) or kind.root is Root.DECIMAL
