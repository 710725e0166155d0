"""Found in review: a long IN list was bound anew for every file, seconds each, though the file has the same columns."""

from __future__ import annotations

from paimon_py import col
from paimon_py.expr.bind import bind
from paimon_py.expr.split import translate
from paimon_py.spec.new_schema import Schema, TableSpec, new_table_schema


def test_a_predicate_is_kept_as_it_is_for_files_with_the_same_columns():
    schema = new_table_schema(Schema([("a", "BIGINT"), ("b", "STRING")]), TableSpec(), time_millis=0)
    predicate = bind(col("a").isin(range(1000)) & (col("b") > "x"), schema.fields)
    kept = translate(predicate, schema.fields)
    assert all(part is before for part, before in zip(kept.parts, predicate.parts, strict=True))
