"""Batch reads: options → columns, and splits that executors read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Union

import pyarrow as pa
from pyspark.sql import types as st

from paimon_py import Scan
from paimon_py.distributed import ROW_KIND_COLUMN
from paimon_py.errors import SchemaError, SnapshotNotFoundError, UsageError
from paimon_py.spark.convert import fit
from paimon_py.spark.source.opening import Source, read_from, where_of
from paimon_py.spark.source.options import BATCH_READS, COLUMNS, KINDS, TRUNCATE, SourceOptions, asked_of
from paimon_py.spark.split_groups import shares_of_source
from paimon_py.spark.types import arrow_schema, spark_schemas
from paimon_py.types import MetadataScan

Readable = Union[Scan, MetadataScan]


def columns(options: Mapping[str, str]) -> st.StructType:
    """The columns of a read, unless the user gives a schema."""
    asked = asked_of(options)
    source = read_from(asked)
    try:
        found = _scan(source, asked, asked.columns).schema
    except SnapshotNotFoundError:  # a continued stream may name a missing state; for a batch read, `plan` raises
        found = source.scan(columns=asked.columns).schema
    if asked.flag(KINDS):
        found = found.append(pa.field(ROW_KIND_COLUMN, pa.string(), nullable=False))
    return spark_schemas(found, None)[1]


def plan(options: Mapping[str, str], wanted: st.StructType) -> tuple[list[list[bytes]], ReadSplits]:
    """The splits of each task of a batch read as bytes, and the function that reads them.

    Args:
        wanted: the columns that Spark expects, in order: those of `columns`, or of the schema that the user gave.

    Raises:
        SchemaError: the table does not have these columns with these types.
    """
    asked = asked_of(options).only_for(BATCH_READS)
    source = read_from(asked)
    names = projection(_scan(source, asked, asked.columns).schema, wanted)
    scan = _scan(source, asked, names)
    if isinstance(scan, MetadataScan):
        tasks = [[bytes(split)] for split in scan.splits()]
    else:
        tasks = list(shares_of_source(scan.iter_splits()))
    return tasks, ReadSplits(scan, wanted, asked.flag(TRUNCATE))


def _scan(source: Source, asked: SourceOptions, names: Sequence[str] | None) -> Scan | MetadataScan:
    where = None if asked.where is None else where_of(asked, source.scan(options=asked.table or None).schema)
    return source.scan(columns=names, where=where, options=asked.table or None)


def projection(there: pa.Schema, wanted: st.StructType) -> list[str]:
    """The names of the columns that Spark expects.

    Args:
        there: the existing columns.

    Raises: SchemaError that lists all columns that do not exist or have another type.
    """
    _, found = spark_schemas(there, None)
    kinds = {field.name: field.dataType for field in found}
    problems = {}
    for field in wanted:
        kind = kinds.get(field.name)
        if kind is None:
            problems[field.name] = f"column {field.name!r} does not exist; the columns are {', '.join(kinds)}"
        elif not _alike(kind, field.dataType):
            problems[field.name] = (
                f"column {field.name!r} is {kind.simpleString()}, not {field.dataType.simpleString()}: "
                "read it with its own type and cast in Spark"
            )
    if problems:
        text = "".join(f"\n  {problem}" for problem in problems.values())
        raise SchemaError(f"the requested schema does not fit:{text}", fields=tuple(problems))
    if not wanted.fields:
        raise UsageError(f"a read has at least one column: name one in the schema or in the option {COLUMNS!r}")
    return list(wanted.fieldNames())


def _alike(kind: st.DataType, other: st.DataType) -> bool:
    """Whether two types have the same values; nullability is ignored."""
    return bool(arrow_schema(_nullable(kind)).equals(arrow_schema(_nullable(other))))


def _nullable(kind: st.DataType) -> st.StructType:
    return st.StructType([st.StructField("c", _loose(kind))])


def _loose(kind: st.DataType) -> st.DataType:
    if isinstance(kind, st.ArrayType):
        return st.ArrayType(_loose(kind.elementType), True)
    if isinstance(kind, st.MapType):
        return st.MapType(_loose(kind.keyType), _loose(kind.valueType), True)
    if isinstance(kind, st.StructType):
        return st.StructType([st.StructField(field.name, _loose(field.dataType), True) for field in kind.fields])
    return kind


class ReadSplits:
    """Runs on an executor: reads the splits of a task."""

    def __init__(self, scan: Readable, wanted: st.StructType, truncate_nanos: bool) -> None:
        self.scan: Any = scan
        self.target = arrow_schema(wanted)
        self.truncate_nanos = truncate_nanos

    def __call__(self, splits: Sequence[bytes]) -> Iterator[pa.RecordBatch]:
        for split in splits:
            for batch in self.scan.read(split):
                yield from fit(batch, self.target, self.truncate_nanos)
