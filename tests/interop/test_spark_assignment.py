"""Types of Spark's columns beside those of a table: what SQL's literals make, what is cast, and what is refused how."""

from __future__ import annotations

import datetime
from decimal import Decimal

import pytest
from spark_sessions import MARKS, local_session

import paimon_py
from paimon_py import Catalog, Schema, SchemaError, UsageError

pytest.importorskip("pyspark", reason="the Spark adapter needs pyspark")
pytestmark = MARKS

UTC = datetime.timezone.utc


@pytest.fixture(scope="module")
def spark():
    yield from local_session(zone="America/New_York", log_level="OFF")


@pytest.fixture
def db(tmp_path):
    made = Catalog.open(str(tmp_path))
    made.create_database("db")
    return made


def made(db, columns, keys=()):
    options = {"primary_key": list(keys), "options": {"bucket": "2"}} if keys else {}
    return db.create_table("db.t", Schema(columns), **options)


def array(kind):
    return {"type": "ARRAY", "element": kind}


def mapping(key, value):
    return {"type": "MAP", "key": key, "value": value}


def row(*fields):
    return {"type": "ROW", "fields": [{"id": at, "name": name, "type": kind} for at, (name, kind) in enumerate(fields)]}


VOID = [
    ("array()", array("INT"), []),
    ("map()", mapping("INT NOT NULL", "INT"), []),
    ("array(null)", array("TIMESTAMP(6)"), [None]),
    ("map('a', null)", mapping("STRING NOT NULL", "DOUBLE"), [("a", None)]),
    ("array(array(), null)", array(array("STRING")), [[], None]),
    ("array(map())", array(mapping("BYTES NOT NULL", array("INT"))), [[]]),
    ("map('a', map())", mapping("STRING NOT NULL", mapping("DATE NOT NULL", "INT")), [("a", [])]),
    ("named_struct('x', null, 'y', array())", row(("x", "INT"), ("y", array("INT"))), {"x": None, "y": []}),
    ("array(named_struct('y', map(), 'x', null))", array(row(("x", "INT"), ("y", mapping("INT NOT NULL", "INT")))), [{"x": None, "y": []}]),
    ("if(k > 100, array(), null)", array("INT"), None),
    ("null", "DECIMAL(5, 2)", None),
]  # fmt: skip


@pytest.mark.parametrize("keys", [(), ("k",)])
def test_what_sql_knows_no_type_of_is_written_in_all_nested_shapes(spark, db, keys):
    table = made(db, [("k", "BIGINT NOT NULL"), *((f"c{at}", kind) for at, (_, kind, _) in enumerate(VOID))], keys)
    texts = [f"{text} AS c{at}" for at, (text, _, _) in enumerate(VOID)]
    df = spark.range(4).selectExpr("id AS k", *texts)
    wanted = {f"c{at}": value for at, (_, _, value) in enumerate(VOID)}
    assert paimon_py.write_spark(table, df).row_count == 4
    assert [{**one, "k": None} for one in table.to_arrow().to_pylist()] == [{"k": None, **wanted}] * 4
    back = paimon_py.convert_from_spark(df).read_all()
    assert back.num_rows == 4
    assert back.drop_columns(["k"]).to_pylist()[0] == {**wanted, "c8": [{"y": [], "x": None}]}
    if keys:
        done = paimon_py.merge_spark(
            table, df.selectExpr("k + 3 AS k", *texts), ["k"], when_matched_update=True, when_not_matched_insert=True
        )
        assert (done.updated, done.inserted) == (1, 3)


KINDS = [
    ("k", "INT NOT NULL"), ("x", "DOUBLE"), ("f", "FLOAT"), ("ntz", "TIMESTAMP(6)"), ("ltz", "TIMESTAMP(6) WITH LOCAL TIME ZONE"),
    ("s", "STRING"), ("d", "DATE"), ("n", "DECIMAL(6, 2)"), ("i", "INT"), ("xs", array("DOUBLE")),
    ("m", mapping("STRING NOT NULL", "STRING")),
]  # fmt: skip
GIVEN = {
    "k": "CAST(id AS INT)", "x": "1.5", "f": "0.25", "ntz": "DATE '2024-07-01'", "ltz": "DATE '2024-07-01'", "s": "42",
    "d": "TIMESTAMP '2024-07-01 23:30:00'", "n": "CAST(1.255 AS DOUBLE)", "i": "CAST(7 AS DOUBLE)",
    "xs": "array(1.5, 2.5)", "m": "map(1, DATE '2024-07-01')",
}  # fmt: skip
FOUND = {
    "x": 1.5, "f": 0.25, "ntz": datetime.datetime(2024, 7, 1), "ltz": datetime.datetime(2024, 7, 1, 4, tzinfo=UTC),  # noqa: DTZ001
    "s": "42", "d": datetime.date(2024, 7, 1), "n": Decimal("1.26"), "i": 7, "xs": [1.5, 2.5], "m": [("1", "2024-07-01")],
}  # fmt: skip


@pytest.mark.parametrize("ansi", ["false", "true"])
def test_literals_of_sql_are_assigned_as_insert_assigns_them(spark, db, ansi):
    spark.conf.set("spark.sql.ansi.enabled", ansi)
    table = made(db, KINDS, ["k"])
    df = spark.range(3).selectExpr(*(f"{text} AS {name.upper()}" for name, text in GIVEN.items()))
    paimon_py.write_spark(table, df)
    assert table.to_arrow().sort_by("k").to_pylist() == [{"k": k, **FOUND} for k in range(3)]
    other = df.selectExpr("k + 2 AS k", *(name for name in GIVEN if name != "k"))
    done = paimon_py.merge_spark(table, other, ["K"], when_matched_update=True, when_not_matched_insert=True)
    assert (done.updated, done.inserted) == (1, 2)
    assert table.refresh().to_arrow().sort_by("k").to_pylist() == [{"k": k, **FOUND} for k in range(5)]


@pytest.mark.parametrize("ansi", ["false", "true"])
@pytest.mark.parametrize(
    ("column", "text"),
    [("i", "3000000000.5"), ("i", "CAST(id * 1e12 AS DOUBLE)"), ("n", "CAST(id * 10000 AS DOUBLE)"), ("i", "CAST('NaN' AS FLOAT)")],
)
def test_values_beyond_their_column_are_refused_as_ours(spark, db, ansi, column, text):
    spark.conf.set("spark.sql.ansi.enabled", ansi)
    table = made(db, KINDS)
    with pytest.raises(SchemaError, match=f"^{column}: .* given, .* needed; a value is out of range") as error:
        paimon_py.write_spark(table, spark.range(3).selectExpr("CAST(id AS INT) AS k", f"{text} AS {column}"))
    assert error.value.fields == (column,)
    assert table.refresh().snapshot() is None


@pytest.mark.parametrize(
    ("column", "text", "advice"),
    [
        ("ntz", "timestamp '2024-07-01 00:00:00'", r"cast\(ntz as timestamp_ntz\)"),
        ("ltz", "timestamp_ntz '2024-07-01 00:00:00'", r"cast\(ltz as timestamp\)"),
        ("i", "'7'", r"cast\(i as int\)"),
        ("d", "'2024-07-01'", r"cast\(d as date\)"),
        ("xs", "array('1')", r"cast\(xs as array<double>\)"),
    ],
)
def test_what_insert_does_not_assign_is_refused_with_the_cast_in_sparks_words(spark, db, column, text, advice):
    table = made(db, KINDS)
    df = spark.range(3).selectExpr("CAST(id AS INT) AS k", f"{text} AS {column}")
    for call in (
        lambda: paimon_py.write_spark(table, df),
        lambda: paimon_py.merge_spark(table, df, ["k"], when_not_matched_insert=True),
    ):
        with pytest.raises(SchemaError, match=rf"{column}: .* given, .* needed; {advice}") as error:
            call()
        assert "pyarrow" not in str(error.value)


def test_columns_of_the_frame_are_found_in_any_case_unless_it_matters(spark, db):
    table = made(db, [("k", "INT NOT NULL"), ("Name", "STRING")], ["k"])
    df = spark.sql("SELECT 1 AS K, 'a' AS NAME, '+I' AS _ROW_KIND")
    paimon_py.write_spark(table, df)
    assert table.to_arrow().to_pylist() == [{"k": 1, "Name": "a"}]
    assert paimon_py.lookup_spark(spark.sql("SELECT 1 AS K"), table, columns=["name"]).collect() == [(1, "a")]
    with pytest.raises(UsageError, match="'K' and 'K' are both the column 'k'"):
        paimon_py.write_spark(table, spark.sql("SELECT 1 AS K, 2 AS K"))
    spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        with pytest.raises(SchemaError, match="K: int32 given.* is it 'k'"):
            paimon_py.write_spark(table, spark.sql("SELECT 1 AS K, 'a' AS NAME"))
    finally:
        spark.conf.set("spark.sql.caseSensitive", "false")
