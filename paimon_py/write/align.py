"""Converts user input to batches with exactly the columns of the table, and the kind of each row.

Source: Java `TableWriteImpl`, `DefaultValueRow`, `RowKindGenerator`, `RowKindFilter`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paimon_py.codec.arrow_types import to_arrow_schema, to_arrow_type
from paimon_py.codec.blob_refs import BlobRef, BlobViewRef
from paimon_py.codec.columns import from_numpy, numpy_values, one_nan, text_array, validity_mask
from paimon_py.errors import CorruptionError, OptionError, SchemaError, UsageError
from paimon_py.expr.bind import near_names
from paimon_py.spec.blobs import BlobPlace, blob_place
from paimon_py.spec.default_values import parse_default
from paimon_py.spec.engine_rules import refused_retracts
from paimon_py.spec.options import Options
from paimon_py.spec.schema import DELETE, ROW_KIND_COLUMN, ROW_KINDS, UPDATE_BEFORE, TableSchema
from paimon_py.spec.type_text import sql_type
from paimon_py.spec.types import Atomic, Field, Root
from paimon_py.write.convert import plan_part, require_values
from paimon_py.write.intact import with_validation
from paimon_py.write.misfits import ColumnPlace, Misfit, error_of, place_of
from paimon_py.write.steps import Refusal, Step

_KIND_TEXTS = text_array(ROW_KINDS)
_NANOS_PER = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1_000, "ns": 1}


class Aligned(NamedTuple):
    """Rows in the table's schema. `kinds` is int8, None when every row is +I."""

    batch: pa.RecordBatch
    kinds: pa.Array | None


class KindRules(msgspec.Struct, frozen=True):
    """The source of row kinds, and the kinds that are dropped.

    `field`: option `rowkind.field`. `dropped`: the kinds that `ignore-delete` and `ignore-update-before` drop.
    `refused`: the reason why the merge engine can never merge rows of kind −U and −D; None: it can.
    """

    allowed: bool
    field: str | None = None
    dropped: tuple[int, ...] = ()
    refused: str | None = None


def kind_rules(schema: TableSchema) -> KindRules:
    """The rules of a table; append tables have no row kinds."""
    if not schema.primary_keys:
        return KindRules(allowed=False)
    options = Options(schema.options)
    dropped: tuple[int, ...] = ()
    if options.get_bool("ignore-delete"):
        dropped = (UPDATE_BEFORE, DELETE)
    elif options.get_bool("ignore-update-before"):
        dropped = (UPDATE_BEFORE,)
    return KindRules(True, kind_field(schema), dropped, refused_retracts(options))


def kind_field(schema: TableSchema) -> str | None:
    """The column that contains the kind of each row, if the table has one.

    Raises: OptionError if the column does not exist.
    """
    name = Options(schema.options).find_str("rowkind.field")
    if name is not None and name not in schema.names:
        reason = f"option 'rowkind.field' = {name!r} is not a column; the columns are {list(schema.names)}"
        raise OptionError(reason, option="rowkind.field", value=name)
    return name


class Alignment:
    """The conversion of batches of one input schema to batches of the table.

    The constructor compares the schemas and refuses everything that can be refused without reading values.

    Raises:
        SchemaError: lists every column that does not fit, with both types and the fix.
        UsageError: `_row_kind` in a table without row kinds.
    """

    def __init__(self, schema: TableSchema, given: pa.Schema, *, fills_nulls: bool = True) -> None:
        """`fills_nulls`: the rows are new: a NULL in a column with a default becomes the default, as in Java, and NaNs
        have the same bits in columns that determine the partition, bucket and key of a row.
        """
        self._rules = kind_rules(schema)
        self._arrow = to_arrow_schema(schema.fields)
        self._fields = schema.fields
        self._keys = frozenset(schema.primary_keys)
        places = {*schema.primary_keys, *schema.partition_keys, *schema.bucket_keys} if fills_nulls else set()
        places_of_blobs = {field.name: blob_place(schema, field) for field in schema.fields}
        self._references = {name: place for name, place in places_of_blobs.items() if place in _DECODES}
        self._kind_index = _kind_index(given, self._rules)
        problems = _unknown_columns(schema, given)
        self._columns: list[_Column] = []
        for field in schema.fields:
            column = _column(field, given)
            if isinstance(column, str):
                problems.append((field.name, column))
            else:
                self._columns.append(
                    column._replace(fills_nulls=column.fills_nulls and fills_nulls, places=field.name in places)
                )
        if problems:
            lines = "".join(f"\n  {text}" for _, text in problems)
            raise SchemaError(f"the data do not fit the table:{lines}", fields=tuple(name for name, _ in problems))

    def apply(self, batch: pa.RecordBatch, first: int | None = None) -> Aligned:
        """The batch in the table's schema, without the rows that options drop.

        Args:
            first: the number of the user's earlier rows, for messages; None: not counted.

        Cost: columns that already have the right type are not copied; only bounded types need a length check.
        Raises:
            SchemaError: a NULL in a NOT NULL column, or a value that does not fit its type; the first one of each
                column.
            UsageError: an invalid row kind, or a kind that the table's merge engine can never merge.
        """
        arrays: list[pa.Array] = []
        misfits: list[Misfit] = []
        for field, column in zip(self._fields, self._columns, strict=True):
            try:
                arrays.append(self._values(field, column, batch))
            except Misfit as misfit:
                misfits.append(misfit)
        if misfits:
            raise error_of(misfits, first) from misfits[0].__cause__
        aligned = pa.RecordBatch.from_arrays(arrays, schema=self._arrow)
        kinds = self._kinds(batch, aligned)
        if kinds is None:
            return Aligned(aligned, None)
        left = _without(aligned, kinds, self._rules.dropped)
        if self._rules.refused is not None and left.kinds is not None:
            self._require_adds(left.kinds, self._rules.refused)
        return left

    def _require_adds(self, kinds: pa.Array, reason: str) -> None:
        """Refuse rows that would make the table unreadable.

        Raises: UsageError
        """
        values = numpy_values(kinds)
        wrong = (values & 1) == 1
        if wrong.any():
            raise UsageError(f"a row of kind {ROW_KINDS[int(values[np.argmax(wrong)])]} cannot be written: {reason}")

    def _values(self, field: Field, column: _Column, batch: pa.RecordBatch) -> pa.Array:
        array = column.of(batch)
        if array.null_count and not field.type.nullable:
            place = place_of(field.name)
            if field.name in self._keys:
                require_values(array, place, fix="fill them, or leave the rows out: no key is NULL")
            require_values(array, place)
        if field.name in self._references:
            require_references(array, place_of(field.name), self._references[field.name])
        return array

    def _kinds(self, batch: pa.RecordBatch, aligned: pa.RecordBatch) -> pa.Array | None:
        if self._rules.field is not None:
            return _kind_bytes(aligned.column(self._rules.field), self._rules.field)
        if self._kind_index is None:
            return None
        return _kind_bytes(batch.column(self._kind_index), ROW_KIND_COLUMN)


class _Column(NamedTuple):
    """The source of a table column: a column of the input, or none. `places`: it says where a new row is."""

    position: int | None
    step: Step
    default: pa.Scalar | None
    type: pa.DataType
    fills_nulls: bool
    places: bool = False

    def of(self, batch: pa.RecordBatch) -> pa.Array:
        if self.position is None:
            if self.default is None:
                return pa.nulls(batch.num_rows, self.type)
            return pa.repeat(self.default, batch.num_rows)
        array = self.step(batch.column(self.position))
        if self.fills_nulls and array.null_count:
            array = pc.fill_null(array, self.default)
        return one_nan(array) if self.places else array


def _column(field: Field, given: pa.Schema) -> _Column | str:
    """The conversion of a column, or the reason why there is none."""
    arrow = to_arrow_type(field.type)
    default = None if field.default is None else _default(field, arrow)
    positions = given.get_all_field_indices(field.name)
    if len(positions) > 1:
        return f"{field.name}: given {len(positions)} times; keep one"
    if not positions:
        if field.type.nullable or default is not None:
            return _Column(None, _as_is, default, arrow, False)
        return f"{field.name}: missing, {sql_type(field.type)} needed; add it, or give the column a default"
    kind, place = given.field(positions[0]).type, place_of(field.name)
    step = plan_part(kind, field.type, place)
    if isinstance(step, Refusal):
        return str(step)
    fills_nulls = default is not None and field.type.nullable
    return _Column(positions[0], with_validation(step, kind, place), default, arrow, fills_nulls)


def _as_is(array: pa.Array) -> pa.Array:
    return array


def _default(field: Field, arrow: pa.DataType) -> pa.Scalar:
    assert field.default is not None
    value: Any = parse_default(field.type, field.default)
    if isinstance(field.type, Atomic) and field.type.root in (Root.TIMESTAMP, Root.TIMESTAMP_LTZ):
        return pa.scalar(value // _NANOS_PER[arrow.unit], pa.int64()).cast(arrow)
    return pa.scalar(value, arrow)


def _unknown_columns(schema: TableSchema, given: pa.Schema) -> list[tuple[str, str]]:
    names = set(schema.names)
    out = []
    unknown = {field.name: field for field in given if field.name not in names and field.name != ROW_KIND_COLUMN}
    for field in unknown.values():
        near = near_names(field.name, [name for name in schema.names if name not in given.names])
        hint = f"is it {' or '.join(map(repr, near))}? If not, " if near else ""
        hint += "leave it out, or add it with table.alter(AddColumn(…)); if it is there already, table.refresh()"
        out.append((field.name, f"{field.name or repr('')}: {field.type} given, the table has no such column; {hint}"))
    return out


def _kind_index(given: pa.Schema, rules: KindRules) -> int | None:
    positions = given.get_all_field_indices(ROW_KIND_COLUMN)
    if not positions:
        return None
    if not rules.allowed:
        raise UsageError(f"{ROW_KIND_COLUMN} needs a table with a primary key; leave the column out")
    if rules.field is not None:
        raise UsageError(
            f"the kinds of this table come from column {rules.field!r} (option 'rowkind.field'); leave "
            f"{ROW_KIND_COLUMN} out"
        )
    if len(positions) > 1:
        raise SchemaError(f"{ROW_KIND_COLUMN}: given {len(positions)} times; keep one", fields=(ROW_KIND_COLUMN,))
    kind = given.field(positions[0]).type
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    texts = pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    if not (texts or pa.types.is_int8(kind)):
        raise UsageError(f"{ROW_KIND_COLUMN} must be one string column of {', '.join(ROW_KINDS)}, not {kind}")
    return int(positions[0])


def require_references(array: pa.Array, place: ColumnPlace, kind: BlobPlace | None) -> None:
    """Refuse bytes that are not references, in a column of BLOB references or of views.

    Raises: Misfit with the first such row.
    """
    decode, word, call = _DECODES[kind]
    for row, value in enumerate(array.to_pylist()):
        if value is not None:
            try:
                decode(value)
            except CorruptionError as error:
                raise Misfit(place, row, f" takes {word} and not bytes (first at ", f"); give {call}") from error


_DECODES: dict[BlobPlace | None, tuple[Callable[[bytes], object], str, str]] = {
    BlobPlace.REFERENCE: (BlobRef.from_bytes, "references", "BlobRef(url)"),
    BlobPlace.VIEW: (BlobViewRef.from_bytes, "views", "BlobViewRef('db.table', field_id, row_id)"),
}
"""How the values of columns of references are decoded, called and made."""


def _kind_bytes(column: pa.Array, name: str) -> pa.Array | None:
    """Kinds as bytes; None if all are +I."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if column.null_count:
        raise UsageError(f"column {name} holds NULL where a row kind is needed: one of {', '.join(ROW_KINDS)}")
    if pa.types.is_int8(column.type):
        kinds = numpy_values(column)
        wrong = (kinds < 0) | (kinds > 3)
    else:
        found = pc.index_in(column.cast(pa.string()), value_set=_KIND_TEXTS)
        wrong = ~validity_mask(found)
        kinds = numpy_values(found).astype(np.int8)
    if wrong.any():
        bad = column[int(np.argmax(wrong))].as_py()
        raise UsageError(f"column {name} holds {bad!r}, which is not a row kind: {', '.join(ROW_KINDS)}")
    return from_numpy(kinds, pa.int8()) if kinds.any() else None


def _without(batch: pa.RecordBatch, kinds: pa.Array, dropped: tuple[int, ...]) -> Aligned:
    values = numpy_values(kinds)
    if dropped:
        kept = ~np.isin(values, dropped)
        if not kept.all():
            mask = from_numpy(kept, pa.bool_())
            batch, kinds = batch.filter(mask), kinds.filter(mask)
            values = values[kept]
    return Aligned(batch, kinds if values.any() else None)
