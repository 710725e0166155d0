"""Joins a DataFrame with the rows of a table that have its keys: point lookups on the executors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import types as st

from paimon_py.distributed import LookupPart
from paimon_py.errors import UsageError
from paimon_py.spark.care import require_table
from paimon_py.spark.case_rule import CaseRule
from paimon_py.spark.convert import fit
from paimon_py.spark.jobs import map_batches
from paimon_py.spark.types import spark_schemas
from paimon_py.spark.write import target_of

if TYPE_CHECKING:
    from paimon_py import Table


def lookup(
    df: DataFrame, table: Table, on: Mapping[str, str] | None, columns: Sequence[str] | None
) -> DataFrame:
    """See `lookup_spark`."""
    require_table(table, "lookup_spark")
    if not hasattr(df, "mapInArrow"):
        raise UsageError(f"lookup_spark takes a DataFrame of Spark, not {type(df).__name__}; see Table.lookup")
    schema = table.schema
    read = CaseRule.of(df.sparkSession)
    given = dict(on or {name: name for name in schema.primary_keys})
    names = {read.one_of(key, schema.primary_keys): read.one_of(name, df.columns) for key, name in given.items()}
    missing = [name for name in names.values() if name not in df.columns]
    if not schema.primary_keys or set(names) != set(schema.primary_keys) or missing:
        raise UsageError(
            f"lookup_spark finds rows by the whole primary key {list(schema.primary_keys)}: the DataFrame needs "
            f'columns of these names, or say on={{"key": "column"}}; it has {df.columns}'
        )
    others = [name for name in schema.names if name not in schema.primary_keys]
    wanted = others if columns is None else [read.one_of(name, schema.names) for name in columns]
    twice = sorted(name for name in wanted if read.one_of(name, df.columns) in df.columns)
    if twice:
        raise UsageError(f"both the DataFrame and the table have {', '.join(twice)}; rename them, or name columns=[…]")
    target, shown = spark_schemas(table.scan(columns=wanted).schema, df.sparkSession)
    loose = st.StructType([st.StructField(field.name, field.dataType, True) for field in shown])
    given, places = target_of(schema, df.schema, read), [df.columns.index(name) for name in names.values()]
    keys = pa.schema([given.field(place).with_name(key) for place, key in zip(places, names, strict=True)])
    work = _LookUp(LookupPart(table, wanted), keys, places, pa.schema([field.with_nullable(True) for field in target]))
    numbered = df.toDF(*map(str, range(len(df.columns))))  # mapInArrow cannot find columns with dots in their names
    return map_batches(numbered, work, st.StructType([*df.schema.fields, *loose.fields]))


class _LookUp:
    """Runs on an executor: adds columns of the table to rows."""

    def __init__(self, part: LookupPart, keys: pa.Schema, places: list[int], target: pa.Schema) -> None:
        self.part = part
        self.keys = keys
        self.places = places
        self.target = target

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            keys = pa.Table.from_batches(fit(batch.select(self.places), self.keys, False), self.keys)
            parts = [part for found in self.part(keys).to_batches() for part in fit(found, self.target, False)]
            columns = [*batch.columns, *pa.Table.from_batches(parts, self.target).columns]
            schema = pa.schema([*batch.schema, *self.target])
            yield from pa.Table.from_arrays(columns, schema=schema).to_batches()
