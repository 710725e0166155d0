"""Columns of other types given to the data source: each is cast, or refused, as `write_spark` has Spark cast it."""

from __future__ import annotations

import datetime

import pyarrow as pa
import pytest
from spark_sessions import MARKS, local_session

from paimon_py import Catalog, Schema, SchemaError, UsageError

pytest.importorskip("pyspark.sql.datasource", reason="Spark has data sources in Python from 4.0 on")
from paimon_py.spark.assignment import assignable  # noqa: E402
from paimon_py.spark.case_rule import CaseRule  # noqa: E402
from paimon_py.spark.source.assigning import StoreAssignment  # noqa: E402

pytestmark = [*MARKS, pytest.mark.full]

ZONE = "America/Sao_Paulo"


@pytest.fixture(scope="module")
def spark():
    yield from local_session(zone=ZONE, log_level="OFF")


@pytest.fixture
def catalog(tmp_path):
    made = Catalog.open(str(tmp_path))
    made.create_database("db")
    return made


WHOLE = ["0", "1", "-1", "127", "-128", "128", "32768", "2147483647", "-2147483648", "2147483648", "9223372036854775807", "NULL"]
BROKEN = ["0.5", "-0.5", "1.5", "2.5", "-2.5", "0.005", "0.015", "-0.015", "127.9", "-128.9", "99999.995", "1e10", "123456.789"]
DECIMALS = [*BROKEN, "0.000000001", "9999999999.5", "NULL"]
FLOATS = [*BROKEN, "1e-7", "1e7", "12345678.9", "3.4e38", "9.3e18", "'NaN'", "'Infinity'", "'-0.0'", "NULL"]
DAYS = ["1970-01-01", "1969-12-31", "2018-11-04", "2018-02-17", "0001-01-01", "9999-12-31", "1900-03-01"]
CLOCKS = ["00:00:00", "23:59:59.999999", "12:30:00.5", "00:30:00.000001"]
TIMES = [f"'{day} {clock}'" for day in DAYS for clock in CLOCKS]
GIVEN = {
    "TINYINT": WHOLE[:5], "SMALLINT": WHOLE[:6], "INT": WHOLE[:9], "BIGINT": WHOLE, "FLOAT": FLOATS, "DOUBLE": FLOATS,
    "DECIMAL(20, 9)": DECIMALS, "DECIMAL(38, 0)": [*WHOLE, "99999999999999999999999999999999999999"],
    "BOOLEAN": ["true", "false", "NULL"], "BINARY": ["'abc'", "'ä'", "NULL"], "DATE": [f"'{day}'" for day in DAYS],
    "TIMESTAMP": TIMES, "TIMESTAMP_NTZ": TIMES,
}  # fmt: skip
WANTED = [
    "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL(5, 2)", "DECIMAL(20, 9)", "DECIMAL(38, 0)", "STRING",
    "BOOLEAN", "BYTES", "DATE", "TIMESTAMP(6)", "TIMESTAMP(6) WITH LOCAL TIME ZONE",
]  # fmt: skip


def value(array):
    """The value of an array with one, by its digits."""
    return repr((array.cast(pa.int64()) if pa.types.is_timestamp(array.type) else array).to_pylist())


def table_of(catalog, *kinds):
    return catalog.create_table("db.t", Schema([(f"c{place}", kind) for place, kind in enumerate(kinds)]))


def unlike(df, schema):
    """The columns that have to be cast; none where they are not taken at all."""
    try:
        return assignable(df.schema, schema, CaseRule())
    except SchemaError:
        return []


def assigned(column, batch):
    """What a task makes of a value, NULL where its type cannot hold it."""
    try:
        made = StoreAssignment([column], None)(batch, ZONE).column(0)
    except SchemaError:
        assert batch.column(0).null_count == 0
        return pa.nulls(1)
    made.validate(full=True)
    return made


@pytest.mark.parametrize("given", GIVEN)
def test_casts_are_those_of_spark(spark, catalog, given):
    """Value by value: what Spark's own cast makes of each, NULL where the type cannot hold it."""
    spark.conf.set("spark.sql.ansi.enabled", "true")
    texts = [f"SELECT CAST({text} AS {given}) AS c" for text in GIVEN[given]]
    df = spark.sql(" UNION ALL ".join(texts)).coalesce(1)
    tables = [catalog.create_table(f"db.t{place}", Schema([("c", kind)])) for place, kind in enumerate(WANTED)]
    found = {kind: column for kind, table in zip(WANTED, tables, strict=True) for column in unlike(df, table.schema)}
    may_fail = [kind for kind in found if "INT" in kind or "DECIMAL" in kind]
    casts = [
        f"{'TRY_CAST' if kind in may_fail else 'CAST'}(c AS {column.wanted.simpleString()}) AS `{kind}`"
        for kind, column in found.items()
    ]
    told = df.selectExpr("c", *casts).toArrow().combine_chunks()
    differ = {}
    for kind, column in found.items():
        for row, text in enumerate(GIVEN[given]):
            ours = assigned(column, told.slice(row, 1).select(["c"]).to_batches()[0])
            theirs = told[kind].chunk(0).slice(row, 1)
            if value(ours) != value(theirs):
                differ[kind, text] = value(ours), value(theirs)
    assert differ == {}
    assert found


def refused(call):
    """What Spark says about an error in the data source."""
    with pytest.raises(Exception) as error:  # noqa: B017, PT011
        call()
    return str(error.value)


def append(df, table, **options):
    df.write.format("paimon").mode("append").options(**options).save(table.location)


def test_literals_of_sql_are_written_by_the_clocks_of_the_session(spark, catalog):
    kinds = ["DOUBLE", "TIMESTAMP(6)", "TIMESTAMP(6) WITH LOCAL TIME ZONE", "STRING", {"type": "ARRAY", "element": "STRING"}, "BIGINT"]
    table = table_of(catalog, *kinds)
    df = spark.sql(  # clocks in São Paulo skip the first hour of that day
        "SELECT 1.5 AS C0, DATE '2018-11-04' AS c1, DATE '2018-11-04' AS c2, TIMESTAMP '2018-11-05 00:00:00' AS c3,"
        " array(DATE '2018-11-04', null) AS c4, 7.9D AS c5"
    )
    append(df, table)
    day = datetime.datetime(2018, 11, 4)  # noqa: DTZ001
    assert table.refresh().to_arrow().to_pylist() == [
        {"c0": 1.5, "c1": day, "c2": datetime.datetime(2018, 11, 4, 3, tzinfo=datetime.timezone.utc), "c3": "2018-11-05 00:00:00",
         "c4": ["2018-11-04", None], "c5": 7}
    ]  # fmt: skip
    append(df.select("c3"), table, timeZone="Asia/Tokyo")
    assert table.refresh().to_arrow()["c3"].to_pylist()[-1] == "2018-11-05 11:00:00"


def test_what_does_not_fit_fails_the_write_and_leaves_nothing(spark, catalog):
    table = table_of(catalog, "INT")
    said = refused(lambda: append(spark.sql("SELECT 3000000000.5 AS c0"), table))
    assert "c0: decimal(11,1) given, INT needed; a value is out of range" in said
    said = refused(lambda: append(spark.sql("SELECT '7' AS c0"), table))
    assert "cast(c0 as int) in Spark makes one of the other" in said
    spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        said = refused(lambda: append(spark.sql("SELECT 7 AS C0"), table))
    finally:
        spark.conf.unset("spark.sql.caseSensitive")
    assert "no such column: C0 is in the table in another case, and spark.sql.caseSensitive is true" in said
    assert table.refresh().snapshot() is None
    assert table.remove_orphans(older_than=0, dry_run=True).files == 0


def test_a_zone_that_nobody_says_is_refused_where_it_matters(spark, catalog):
    table = table_of(catalog, "TIMESTAMP(6) WITH LOCAL TIME ZONE")
    df = spark.sql("SELECT DATE '2018-11-04' AS c0")
    batch = df.toArrow().to_batches()[0]
    with pytest.raises(UsageError, match="timeZone"):
        StoreAssignment(assignable(df.schema, table.schema, CaseRule()), None)(batch, None)
