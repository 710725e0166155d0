"""Columns of odd shapes at Spark's doors: what Arrow's doors refuse is refused in the same way, before any job runs.

What fits the table in the terms of SQL's INSERT is written; for the other values a task fails, and nothing is written.
"""

from __future__ import annotations

import datetime
import re

import pytest
from spark_sessions import MARKS, local_session

import paimon_py
from paimon_py import Catalog, PaimonError, Schema, SchemaError, UnsupportedError

pytest.importorskip("pyspark", reason="the Spark adapter needs pyspark")
pytestmark = MARKS


@pytest.fixture(scope="module")
def spark():
    for session in local_session(zone="America/New_York", log_level="OFF", master="local[1]"):
        session.conf.set("spark.sql.codegen.wholeStage", "false")
        yield session


@pytest.fixture
def catalog(tmp_path):
    made = Catalog.open(str(tmp_path))
    made.create_database("db")
    return made


def array(kind):
    return {"type": "ARRAY", "element": kind}


def mapping(key, value):
    return {"type": "MAP", "key": key, "value": value}


def row(*fields):
    return {"type": "ROW", "fields": [{"id": at, "name": name, "type": kind} for at, (name, kind) in enumerate(fields)]}


COLUMNS = [
    ("k", "INT NOT NULL"), ("q", "INT NOT NULL"), ("c", "STRING"), ("n", "INT"), ("ts", "TIMESTAMP(6)"), ("lz", "TIMESTAMP(3) WITH LOCAL TIME ZONE"),
    ("dec", "DECIMAL(5, 2)"), ("b", "BYTES"), ("vc", "VARCHAR(3)"), ("t", "TIME(3)"), ("bo", "BOOLEAN"), ("f", "FLOAT"), ("xs", array("INT NOT NULL")),
    ("m", mapping("STRING NOT NULL", "INT")), ("r", row(("x", "INT"), ("y", "STRING"))), ("rs", array(row(("x", "INT"), ("y", "STRING NOT NULL")))),
]  # fmt: skip
KEYED = {"primary_key": ["k"], "options": {"bucket": "2"}}
K, Q = "CAST(id AS INT) AS k", "CAST(id AS INT) AS q"
NAMES = {
    "c twice": ([K, Q, "'a' AS c", "'b' AS c"], {"c"}),
    "a stranger": ([K, Q, "1 AS z"], {"z"}),
    "a stranger twice": ([K, Q, "1 AS z", "2 AS z"], {"z"}),
    "both cases": ([K, Q, "'a' AS c", "'a' AS C"], {"C"}),
    "no name": ([K, Q, "1 AS ``"], {""}),
    "a dot": ([K, Q, "1 AS `a.b`"], {"a.b"}),
    "no key": ([Q, "'a' AS c"], {"k"}),
    "no column": ([], {"k"}),
    "not a column of ours": ([K, Q, "1L AS _SEQUENCE_NUMBER"], {"_SEQUENCE_NUMBER"}),
}
"""Names that no door takes, and the columns at fault."""
STRUCT = "fields of structs are found by their names as they are: give struct<x:int,y:string>"
TYPES = {
    "k": [("CAST(id AS STRING)", "cast(k as int)")],
    "c": [("array(1)", "cast(c as string)"), ("map('x', 1)", "cast(c as string)"), ("named_struct('x', 1)", "cast(c as string)")],
    "n": [
        ("'1'", "cast(n as int)"), ("true", "cast(n as int)"), ("DATE '2020-01-01'", "Spark casts none to the other: give int"),
        ("named_struct('x', 1)", "Spark casts none"), ("array(1)", "Spark casts none"), ("X'01'", "Spark casts none"),
    ],
    "ts": [
        ("TIMESTAMP '2020-01-01 00:00:00'", "cast(ts as timestamp_ntz)"), ("'2020-01-01'", "cast(ts as timestamp_ntz)"),
        ("1", "Spark casts none to the other: give timestamp_ntz"),
    ],
    "lz": [("TIMESTAMP_NTZ '2020-01-01 00:00:00'", "cast(lz as timestamp)"), ("1", "cast(lz as timestamp)")],
    "dec": [("'1.5'", "cast(dec as decimal(5,2))")],
    "b": [("'x'", "cast(b as binary)"), ("1", "cast(b as binary)"), ("1.5D", "Spark casts none to the other: give binary")],
    "t": [
        ("1000L", "give the milliseconds of the day as int"), ("'10:00:00'", "give the milliseconds"), ("10.5D", "give the milliseconds"),
        ("TIMESTAMP_NTZ '2020-01-01 00:00:00'", "give the milliseconds"),
    ],
    "bo": [("1", "cast(bo as boolean)"), ("'true'", "cast(bo as boolean)")],
    "xs": [
        ("array(1.5D)", "cast(xs as array<int>)"), ("array('1')", "cast(xs as array<int>)"), ("map('a', 1)", "Spark casts none"),
        ("array(named_struct('x', 1))", "Spark casts none to the other: give array<int>"),
    ],
    "m": [("named_struct('a', 1)", "Spark casts none"), ("map('a', 'b')", "cast(m as map<string,int>)")],
    "r": [
        ("named_struct('Y', 'b', 'X', 1)", STRUCT), ("named_struct('x', 1, 'y', 'b', 'z', 2)", STRUCT), ("named_struct('x', 1, 'x', 2)", STRUCT),
        ("named_struct('x', '1', 'y', 'b')", STRUCT), ("'x'", STRUCT),
    ],
    "rs": [("array(named_struct('x', 1))", "as they are"), ("array(named_struct('Y', 'b', 'X', 1))", "as they are")],
}  # fmt: skip
"""Expressions of types that a column is not assigned, and what the error advises."""
KINDLESS = {"interval day": "INTERVAL '1' DAY", "interval year": "INTERVAL '1' YEAR"}
TAKEN = {
    "c": [("1", "1"), ("true", "true"), ("DATE '2020-01-01'", "2020-01-01"), ("CAST('ab' AS BINARY)", "ab"), ("null", None)],
    "ts": [("DATE '2020-01-01'", datetime.datetime(2020, 1, 1))],  # noqa: DTZ001
    "lz": [("DATE '2020-01-01'", datetime.datetime(2020, 1, 1, 5, tzinfo=datetime.timezone.utc))],
    "t": [("1000", datetime.time(0, 0, 1)), ("null", None)],
    "f": [("1.5BD", 1.5)],
    "xs": [("array(1L)", [1]), ("array()", []), ("null", None)],
    "m": [("map(1, 1)", [("1", 1)]), ("map()", [])],
    "r": [
        ("named_struct('y', 'b', 'x', 1)", {"x": 1, "y": "b"}), ("named_struct('x', 1L)", {"x": 1, "y": None}),
        ("named_struct('x', null, 'y', null)", {"x": None, "y": None}),
    ],
}  # fmt: skip
"""Expressions that a column is assigned, and their values."""
MISFITS = [
    ("CAST(nullif(id, 1) AS INT) AS k", "k is NOT NULL"), ("NULL AS k", "k is NOT NULL"), ("id + 3000000000 AS k", "column k: 300000000"),
    ("CAST(nullif(id, 1) AS INT) AS q", "q is NOT NULL"), ("NULL AS q", "q is NOT NULL"), ("1.255BD AS dec", "column dec: 1.255"),
    ("TIMESTAMP '2020-01-01 00:00:00.123456' AS lz", "column lz"), ("'abcd' AS vc", "column vc: 'abcd'"), ("X'ff' AS c", "c"),
    ("-1 AS t", "column t"), ("86400000 AS t", "column t"), ("16777217 AS f", "column f: 16777217"), ("1e300D AS f", r"column f: 1e\+300"),
    ("array(1, null) AS xs", "xs.element is NOT NULL"), ("array(named_struct('x', 1, 'y', CAST(null AS STRING))) AS rs", "rs.element.y is NOT NULL"),
]  # fmt: skip
"""Values that their columns do not hold."""
DOORS = {
    "append": ({}, lambda target, df: paimon_py.write_spark(target, df)),
    "keyed": (KEYED, lambda target, df: paimon_py.write_spark(target, df)),
    "overwrite": (KEYED, lambda target, df: paimon_py.write_spark(target, df, "overwrite")),
    "merge": (KEYED, lambda target, df: paimon_py.merge_spark(target, df, ["k"], when_matched_update=True, when_not_matched_insert=True)),
    "merge of append": ({}, lambda target, df: paimon_py.merge_spark(target, df, ["k"], when_matched_update=True, when_not_matched_insert=True)),
}  # fmt: skip


@pytest.fixture(params=DOORS)
def door(request, catalog):
    options, call = DOORS[request.param]
    return catalog.create_table("db.t", Schema(COLUMNS), **options), call


def of_column(name, text):
    return [f"{text} AS k" if name == "k" else K, Q, *([f"{text} AS {name}"] if name != "k" else [])]


def left_nothing(target):
    target = target.refresh()
    return target.snapshot() is None and target.remove_orphans(older_than=0, dry_run=True).files == 0


def test_names_and_types_that_no_door_takes_are_refused_before_a_job(spark, door):
    target, call = door
    tracker = spark.sparkContext.statusTracker()
    before = set(tracker.getJobIdsForGroup())
    for case, (texts, columns) in NAMES.items():
        df = spark.range(3).selectExpr(*texts)
        with pytest.raises(SchemaError) as caught:
            call(target, df)
        assert columns <= {*caught.value.fields} and all(name in str(caught.value) for name in columns), case
    for name, cases in TYPES.items():
        for text, advice in cases:
            for count in (0, 3):
                with pytest.raises(SchemaError, match=rf"(?s){name}: .* given, .* needed; .*{re.escape(advice)}") as caught:
                    call(target, spark.range(count).selectExpr(*of_column(name, text)))
                assert caught.value.fields == (name,) and "pyarrow" not in str(caught.value)
    for kind, text in KINDLESS.items():
        for name in ("n", "z"):
            with pytest.raises(UnsupportedError, match=f"column '{name}': no Arrow type for Spark's {kind}"):
                call(target, spark.range(3).selectExpr(K, Q, f"{text} AS {name}"))
    assert set(tracker.getJobIdsForGroup()) == before and left_nothing(target)


@pytest.mark.full
def test_values_that_a_column_is_assigned(spark, door):
    target, call = door
    for place in range(max(map(len, TAKEN.values()))):
        chosen = {name: cases[place % len(cases)] for name, cases in TAKEN.items()}
        df = spark.range(2).selectExpr(K, Q, *(f"{text} AS {name.upper()}" for name, (text, _) in chosen.items()))
        call(target, df)
        target = target.refresh()
        found = target.to_arrow().to_pylist()[-1]
        assert {name: found[name] for name in chosen} == {name: value for name, (_, value) in chosen.items()}
    call(target, spark.range(0).selectExpr(K, Q, "NULL AS c", "array() AS xs"))
    call(target, spark.range(0).selectExpr("NULL AS k", "NULL AS q"))


@pytest.mark.full
@pytest.mark.parametrize(("text", "words"), MISFITS)
@pytest.mark.parametrize("name", ["append", "keyed", "merge"])
def test_values_that_do_not_fit_fail_the_write_and_leave_nothing(spark, catalog, name, text, words):
    options, call = DOORS[name]
    target = catalog.create_table("db.t", Schema(COLUMNS), **options)
    texts = [one for one in (K, Q) if not text.endswith(one[-2:])]
    with pytest.raises(PaimonError, match=words):
        call(target, spark.range(3).selectExpr(text, *texts))
    assert left_nothing(target)


def test_frames_that_make_no_table(spark, catalog):
    for texts, words in (
        (["1 AS a", "2 AS a"], "'a'"), (["1 AS ``"], "empty"), ([], "at least one column"), (["NULL AS a"], "'a': void has no values"),
        (["array() AS a"], "'a'"), (["map() AS a"], "'a'"), (["named_struct('x', null) AS a"], "'a'"), (["INTERVAL '1' DAY AS a"], "'a': Spark's"),
        (["1 AS _row_kind"], "_row_kind"), (["1 AS _ROW_ID"], "_ROW_ID"),
    ):  # fmt: skip
        with pytest.raises(PaimonError, match=re.escape(words)):
            catalog.create_table("db.n", spark.range(1).selectExpr(*texts))
        assert "n" not in catalog.tables("db")
    made = catalog.create_table("db.n", spark.range(1).selectExpr("1 AS `a.b`", "named_struct('X', 1, 'x', 2) AS r"))
    assert [*made.schema.names] == ["a.b", "r"]
