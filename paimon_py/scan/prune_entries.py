"""Selects the files of a snapshot that may contain matching rows: by bucket, key range and statistics.

Every answer is safe: unknown files are kept.

Source: format.md §9, §17; Java `AbstractFileStoreScan`, `KeyValueFileStoreScan`, `BucketSelector`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paimon_py.codec.arrow_types import to_arrow_type
from paimon_py.codec.binary_row import decode_at
from paimon_py.codec.buckets import bucket_numbers
from paimon_py.codec.columns import Mask, distinct_integers, from_numpy, numpy_values, validity_mask
from paimon_py.codec.manifest.columns import ABSENT, EntryColumns
from paimon_py.errors import CorruptionError, UnsupportedError
from paimon_py.expr.arrow import pinned_values
from paimon_py.expr.predicate import Predicate
from paimon_py.expr.prune import Bounds, may_match
from paimon_py.expr.references import columns_of
from paimon_py.files.casts.cast import cast
from paimon_py.files.file_index import matching
from paimon_py.files.physical import (
    DATA_EVOLUTION,
    ROW_ID_FIELD,
    TRACKED_FIELDS,
    TRACKED_IDS,
    bounded_fields,
    evolves_columns,
)
from paimon_py.files.stats_evolution import bounded_columns, evolved_bounds
from paimon_py.scan.plan import data_files
from paimon_py.scan.request import FileChoice
from paimon_py.spec.file_rules import FORMATS, PACKAGED_FORMATS, VECTOR_FORMATS
from paimon_py.spec.schema import ROW_ID, TableSchema
from paimon_py.spec.types import Atomic, DataType, Field, Root
from paimon_py.storage.store import OpenRead

SchemaOf = Callable[[int], TableSchema]

_IDS = frozenset(field.name for field in TRACKED_FIELDS)
_KINDS = (*FORMATS, *PACKAGED_FORMATS, "blob", *(f"vector.{name}" for name in VECTOR_FORMATS))
_MAX_PINNED = 1000
_UNSAFE_HASHES = (Root.FLOAT, Root.DOUBLE)


def check_entries(entries: EntryColumns, schema: TableSchema, schema_of: SchemaOf) -> None:
    """Refuse files that need an unsupported feature. `schema`: the table's schema.

    Raises: UnsupportedError; the message names the feature.
    """
    evolves = evolves_columns(schema)
    if evolves:
        _check_formats(entries)
    if not entries.knows("write_columns"):
        return
    codes, lists = entries.lists("write_columns")
    for code, names in enumerate(lists):
        if names is None:
            continue
        for number in distinct_integers(entries.schema_id[codes == code]).tolist():
            known, found = set(schema_of(number).names), set(names)
            if (evolves and not found <= known) or (not evolves and found - _IDS != known):
                rows = np.flatnonzero((codes == code) & (entries.schema_id == number))
                name = entries.take(rows[:1]).names()[0].as_py()
                unknown = f"columns that its schema does not have, {sorted(found - known)}"
                feature = unknown if evolves else DATA_EVOLUTION
                raise UnsupportedError(f"data file {name} needs {feature}, which is not supported", feature=feature)


def _check_formats(entries: EntryColumns) -> None:
    """Refuse files in special formats, such as `.video` and `.vector.lance`."""
    names = entries.names()
    kinds = pc.struct_field(pc.extract_regex(names, r"\.(?P<kind>(?:vector\.)?[^.]*)$"), "kind")
    other = names.filter(pc.invert(pc.fill_null(pc.is_in(kinds, value_set=pa.array(_KINDS)), False)))
    if len(other):
        name = other[0].as_py()
        feature = f"files of the kind {name.partition('.')[2]!r}"
        raise UnsupportedError(f"data file {name} needs {feature}, which are not supported", feature=feature)


def choice_mask(entries: EntryColumns, files: FileChoice) -> Mask:
    """A mask of entries with the chosen levels and creation times. Files without a time count as oldest.

    Source: Java `DataFileMeta.creationTimeEpochMillis`: entries store the local time of the writer.
    """
    keep: Mask = np.ones(len(entries), np.bool_)
    if files.level is not None:
        keep &= entries.level == files.level
    if files.above_level is not None:
        keep &= entries.level > files.above_level
    if files.created_since_millis is not None:
        keep &= entries.creation_time_millis >= files.created_since_millis
    return keep


def bucket_mask(entries: EntryColumns, predicate: Predicate, schema: TableSchema, schema_of: SchemaOf) -> Mask | None:
    """A mask of entries in the buckets of the bucket keys that can match; None if the predicate does not determine
    them.

    Every partition has its own number of buckets. Only the default bucket function is used: Paimon 0.9 writes with it
    whatever the option says, so a table may have either layout.
    """
    keys = hashed_keys(entries, schema, schema_of)
    pinned = pinned_values(predicate) if keys is not None else {}
    if keys is None or any(field.name not in pinned for field in keys):
        return None
    columns = _combinations([pinned[field.name] for field in keys])
    if columns is None:
        return None
    keep: Mask = np.ones(len(entries), np.bool_)
    totals = entries.total_buckets
    for total in distinct_integers(totals[totals > 1]).tolist():
        wanted = bucket_numbers(columns, [field.type for field in keys], total)
        keep &= (totals != total) | np.isin(entries.bucket, wanted)
    return keep


def hashed_keys(entries: EntryColumns, schema: TableSchema, schema_of: SchemaOf) -> list[Field] | None:
    """The columns whose hash is known to have determined the buckets of all these files; None if unknown."""
    keys = [schema.field(name) for name in schema.bucket_keys]
    if not keys or any(not _hashes_safely(field.type) for field in keys):
        return None
    if schema.options.get("bucket-function.type", "default") != "default":
        return None
    if any(not _same_keys(schema_of(number), keys) for number in distinct_integers(entries.schema_id).tolist()):
        return None
    return keys


def key_mask(entries: EntryColumns, predicate: Predicate, schema: TableSchema, schema_of: SchemaOf) -> Mask:
    """A mask of files that may contain a matching key, by the statistics of each key column."""
    keep: Mask = np.ones(len(entries), np.bool_)
    for number in distinct_integers(entries.schema_id).tolist():
        rows = np.flatnonzero(entries.schema_id == number)
        written = schema_of(number)
        keep[rows] = _may(entries.take(rows), predicate, written, schema, written.key_fields, "key")
    return keep


def stats_mask(entries: EntryColumns, predicate: Predicate, schema: TableSchema, schema_of: SchemaOf) -> Mask:
    """A mask of files that may contain a matching row, by their value statistics.

    Cost: one pass per distinct (schema, list of columns with statistics).
    """
    keep: Mask = np.ones(len(entries), np.bool_)
    codes, lists = bounded_columns(entries)
    schema_ids, places = np.unique(entries.schema_id, return_inverse=True)
    shapes = places * max(1, len(lists)) + codes
    for shape in distinct_integers(shapes).tolist():
        place, code = divmod(shape, len(lists))
        number = int(schema_ids[place])
        rows = np.flatnonzero(shapes == shape)
        written = schema_of(number)
        covered = bounded_fields(written, lists[code])
        keep[rows] = _may(entries.take(rows), predicate, written, schema, covered, "value")
    return keep


def bounds_of(entries: EntryColumns, field: Field, schema_of: SchemaOf) -> Bounds:
    """The value statistics of one column of the requested schema, one slot per entry.

    Cost: one pass per distinct (schema, list of columns with statistics).
    """
    if field.id == ROW_ID_FIELD.id:
        return _id_bounds(entries, schema_of)
    codes, lists = bounded_columns(entries)
    shapes = entries.schema_id * max(1, len(lists)) + codes
    nothing = pa.nulls(0, to_arrow_type(field.type))
    parts, places = [(nothing, nothing, pa.nulls(0, pa.int64()))], [np.zeros(0, np.int64)]
    for shape in distinct_integers(shapes).tolist():
        number, code = divmod(shape, max(1, len(lists)))
        rows = np.flatnonzero(shapes == shape)
        written = schema_of(number)
        covered = bounded_fields(written, lists[code])
        wanted = [] if field.id in TRACKED_IDS else [field]
        found = evolved_bounds(entries.take(rows), covered, written.fields, wanted).get(field.name)
        blank = pa.nulls(len(rows), nothing.type)
        counts = pa.nulls(len(rows), pa.int64()) if found is None or found.null_count is None else found.null_count
        parts.append((blank, blank, counts) if found is None else (found.min, found.max, counts))
        places.append(rows)
    order = from_numpy(np.argsort(np.concatenate(places), kind="stable"), pa.int64())
    low, high, nulls = (pa.concat_arrays(columns).take(order) for columns in zip(*parts, strict=True))
    return Bounds(min=low, max=high, null_count=nulls)


def index_mask(entries: EntryColumns, predicate: Predicate, store: OpenRead, schema_of: SchemaOf) -> Mask:
    """A mask of files that may contain a matching row, by the indexes in their manifest entries; no index files are
    read.

    Cost: about 100 µs per such file.
    """
    keep: Mask = np.ones(len(entries), np.bool_)
    rows = np.flatnonzero(entries.slices("embedded_index").lengths >= 0)
    for row, file in zip(rows.tolist(), data_files(entries.take(rows), indexed=True), strict=True):
        found = matching(store, file.name, file, schema_of(file.schema_id).fields, predicate)
        keep[row] = found is None or len(found) > 0
    return keep


def _may(
    entries: EntryColumns,
    predicate: Predicate,
    written: TableSchema,
    schema: TableSchema,
    covered: Sequence[Field],
    which: Literal["key", "value"],
) -> Mask:
    """A mask of entries, all with the same schema, that may match by statistics of the covered columns."""
    wanted = columns_of(predicate)
    fields = [field for field in schema.fields if field.name in wanted and field.id not in TRACKED_IDS]
    bounds = evolved_bounds(entries, covered, written.fields, fields, which=which)
    if ROW_ID in wanted and ROW_ID_FIELD in schema.fields:
        bounds[ROW_ID] = _id_bounds(entries, lambda _: written)
    return may_match(predicate, bounds, from_numpy(entries.row_count, pa.int64()))


def _id_bounds(entries: EntryColumns, schema_of: SchemaOf) -> Bounds:
    """The first and last row id of each file; for files that store the ids, from statistics, or NULL.

    A stored id may be NULL only in a file with a first id; its bounds are then those of the ids that follow from it.
    """
    has = entries.first_row_id != ABSENT
    low, high = entries.first_row_id.copy(), entries.first_row_id + entries.row_count - 1
    stored = np.flatnonzero(~has)
    if len(stored) and entries.knows("write_columns"):
        some = entries.take(stored)
        codes, lists = bounded_columns(some)
        for code, names in enumerate(lists):
            if names is None or ROW_ID not in names:
                continue
            for number in distinct_integers(some.schema_id[codes == code]).tolist():
                rows = np.flatnonzero((codes == code) & (some.schema_id == number))
                covered = bounded_fields(schema_of(number), names)
                found = evolved_bounds(some.take(rows), covered, covered, [ROW_ID_FIELD])[ROW_ID]
                known = validity_mask(found.min) & validity_mask(found.max)
                places = stored[rows[known]]
                has[places] = True
                low[places] = numpy_values(found.min.drop_null())
                high[places] = numpy_values(found.max.drop_null())
    lows, highs = (from_numpy(np.where(has, ends, 0), pa.int64(), has) for ends in (low, high))
    return Bounds(min=lows, max=highs, null_count=from_numpy(np.zeros(len(entries), np.int64), pa.int64()))


def key_columns(entries: EntryColumns, rows: str, schema: TableSchema, schema_of: SchemaOf) -> list[pa.Array]:
    """The columns of a key row of every entry (`min_key`, `max_key`, `key_min`, `key_max`), in the schema's types.

    Cost: one decoding step per distinct set of key types, usually one.
    """
    wanted = [field.type for field in schema.key_fields]
    ids = entries.schema_id
    older = [number for number in distinct_integers(ids).tolist() if not _same_key(schema_of(number), schema)]
    if not older:
        buffer, starts = entries.rows(rows)
        return decode_at(buffer, starts, wanted)
    parts: list[list[pa.Array]] = []
    places = []
    for number in [None, *older]:
        picked = np.flatnonzero(~np.isin(ids, older) if number is None else ids == number)
        types = wanted if number is None else _key_types(schema_of(number), schema)
        buffer, starts = entries.take(picked).rows(rows)
        columns = decode_at(buffer, starts, types)
        parts.append([cast(column, kind, to) for column, kind, to in zip(columns, types, wanted, strict=True)])
        places.append(picked)
    back = np.argsort(np.concatenate(places), kind="stable")
    order = from_numpy(back, pa.int64())
    return [pa.concat_arrays(column).take(order) for column in zip(*parts, strict=True)]


def _key_types(written: TableSchema, schema: TableSchema) -> list[DataType]:
    """The types of the primary key in another version of the schema.

    Raises: CorruptionError if the key had other columns, which no release allows: rows would be merged by another key.
    """
    if [field.id for field in written.key_fields] != [field.id for field in schema.key_fields]:
        raise CorruptionError(
            f"schema {written.id} has the primary key {list(written.primary_keys)}, and schema {schema.id} has "
            f"{list(schema.primary_keys)}: the primary key of a table never changes"
        )
    return [field.type for field in written.key_fields]


def _same_keys(schema: TableSchema, keys: Sequence[Field]) -> bool:
    """Whether the columns had the same types in another version of the schema."""
    types = {field.id: _bare(field.type) for field in schema.fields}
    return all(types.get(field.id) == _bare(field.type) for field in keys)


def _same_key(written: TableSchema, schema: TableSchema) -> bool:
    one, other = ([(field.id, _bare(field.type)) for field in each.key_fields] for each in (written, schema))
    return one == other


def _bare(kind: DataType) -> tuple[object, ...]:
    if isinstance(kind, Atomic):
        return kind.root, kind.length, kind.precision, kind.scale
    return (kind,)


def _hashes_safely(kind: DataType) -> bool:
    """Whether all known writers hash values of the type in the same way (not so for wide decimals and NaN)."""
    if not isinstance(kind, Atomic) or kind.root in _UNSAFE_HASHES:
        return False
    return kind.root is not Root.DECIMAL or (kind.precision or 10) <= 18


def _combinations(values: Sequence[pa.Array]) -> list[pa.Array] | None:
    """All combinations of the columns' values, as columns; None if there are too many."""
    if np.prod([len(column) for column in values]) > _MAX_PINNED:
        return None
    rows = list(itertools.product(*(range(len(column)) for column in values)))
    places = np.array(rows, np.int64).reshape(len(rows), len(values))
    return [column.take(from_numpy(places[:, at], pa.int64())) for at, column in enumerate(values)]
