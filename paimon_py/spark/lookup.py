"""Rows of a table beside those of a DataFrame that name their keys: points looked up on the executors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import types as st

from paimon_py.codec.columns import combine, from_numpy, validity_mask
from paimon_py.errors import UsageError
from paimon_py.lookup.lookups import Lookups
from paimon_py.spark.care import require_table
from paimon_py.spark.case_rule import CaseRule
from paimon_py.spark.convert import fit
from paimon_py.spark.jobs import map_batches
from paimon_py.spark.types import spark_schemas
from paimon_py.spark.write import target_of

if TYPE_CHECKING:
    from paimon_py import Table
    from paimon_py.types import SnapshotValue as Snapshot


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
    latest = table._root.latest()
    work = _LookUp(
        table, latest, target_of(schema, df.schema, read), [df.columns.index(names[k]) for k in names],
        list(names), wanted, pa.schema([field.with_nullable(True) for field in target]),
    )  # fmt: skip
    numbered = df.toDF(*map(str, range(len(df.columns))))  # mapInArrow cannot find columns with dots in their names
    return map_batches(numbered, work, st.StructType([*df.schema.fields, *loose.fields]))


class _LookUp:
    """Runs on an executor: rows in, the same rows with columns of the table out."""

    def __init__(
        self, table: Table, snapshot: Snapshot | None, given: pa.Schema, places: list[int], keys: list[str],
        columns: list[str], target: pa.Schema,
    ) -> None:  # fmt: skip
        self.table = table
        self.snapshot = snapshot
        self.given = pa.schema([given.field(place).with_name(key) for place, key in zip(places, keys, strict=True)])
        self.places = places
        self.columns = columns
        self.target = target

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        lookups = Lookups(self.table._root)
        for batch in batches:
            columns = [combine(column) for column in self._find(lookups, batch)]
            schema = pa.schema([*batch.schema, *self.target])
            yield pa.RecordBatch.from_arrays([*batch.columns, *columns], schema=schema)

    def _find(self, lookups: Lookups, batch: pa.RecordBatch) -> list[pa.ChunkedArray]:
        """The columns of the table, NULL where no row has the key of a row."""
        if self.snapshot is None or not batch.num_rows:
            return [pa.chunked_array([pa.nulls(batch.num_rows, field.type)]) for field in self.target]
        keys = pa.Table.from_batches(fit(batch.select(self.places), self.given, False))
        known = np.logical_and.reduce([validity_mask(combine(column)) for column in keys.columns])
        asked = keys.filter(pa.array(known))
        rows = lookups.rows(self.table.schema, asked, self.columns, "null", at=self.snapshot)
        parts = [part for one in rows.to_batches() for part in fit(one, self.target, False)]
        places = from_numpy(np.cumsum(known) - 1, pa.int64(), known)
        return [column.take(places) for column in pa.Table.from_batches(parts, self.target).columns]
