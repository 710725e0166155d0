"""`catalog.sql` gives what DuckDB gives of the same rows in memory: random queries, each made from a seed."""

from __future__ import annotations

import datetime
import decimal
import math
import random

import pyarrow as pa
import pytest
from unit.public import new_catalog

from paimon_py import Schema

duckdb = pytest.importorskip("duckdb")

COLUMNS = {
    "k": "BIGINT NOT NULL", "p": "STRING NOT NULL", "i": "INT", "y": "TINYINT", "s": "STRING", "f": "DOUBLE", "g": "FLOAT",
    "n": "DECIMAL(12, 3)", "d": "DATE", "t": "TIMESTAMP(6)", "m": "TIMESTAMP(3)", "z": "TIMESTAMP(6) WITH LOCAL TIME ZONE",
    "b": "BOOLEAN", "x": "BYTES", "c": "TIME(0)", "r": "ROW<a INT, b STRING>", "l": "ARRAY<INT>",
}  # fmt: skip
KINDS = {
    "keyed": {"primary_key": ["k", "p"], "partition_by": ["p"], "options": {"bucket": "2"}},
    "appended": {"partition_by": ["p"]},
    "orc": {"options": {"file.format": "orc"}},
    "avro": {"primary_key": ["k"], "options": {"file.format": "avro", "bucket": "1", "deletion-vectors.enabled": "true"}},
}
CONDITIONS = [
    "{a}.i > {int}", "{a}.i IN ({int}, {int}, 3)", "{a}.i BETWEEN {int} AND {int}", "{a}.y = {int}", "{a}.k % 3 = 1", "{a}.k <= {int}",
    "{a}.p = '{part}'", "{a}.p <> '{part}'", "{a}.s >= 'm'", "{a}.s LIKE 'a%'", "{a}.s LIKE '%b%'", "{a}.s IS NULL", "{a}.i IS NOT NULL",
    "{a}.f > 0.5", "{a}.f = 0", "{a}.f <> 'nan'::double", "{a}.g < 1", "{a}.n >= 1.5", "{a}.n = {int}", "{a}.d > DATE '2020-01-10'",
    "{a}.t < TIMESTAMP '2020-01-12 03:00:00'", "{a}.m >= TIMESTAMP '2020-01-05'", "{a}.z > TIMESTAMPTZ '2020-01-08 00:00:00+00'",
    "{a}.b", "NOT {a}.b", "{a}.x = '\\x01'::BLOB", "{a}.c > TIME '05:00:00'", "{a}.r.a = {int}", "{a}.r.b IS NULL", "len({a}.l) > 1",
    "{a}.i IN (SELECT i FROM {other} WHERE k < 20)", "{a}.i = {a}.y", "{a}.s < {a}.p", "coalesce({a}.i, 0) > {int}",
]  # fmt: skip
VALUES = ["i", "y", "s", "f", "g", "n", "d", "t", "m", "z", "b", "x", "c", "r", "l", "k", "p"]
SUMS = ["count(*)", "count({a}.i)", "sum({a}.i)", "min({a}.s)", "max({a}.t)", "avg({a}.n)", "min({a}.d)", "count(DISTINCT {a}.p)", "max({a}.z)"]


def some_rows(draw, count):
    def perhaps(value):
        return None if draw.random() < 0.15 else value

    start = datetime.datetime(2020, 1, 1)
    for key in range(count):
        moment = start + datetime.timedelta(microseconds=draw.randrange(20 * 86_400_000_000))
        yield {
            "k": draw.randrange(count), "p": draw.choice("abc"), "i": perhaps(draw.randrange(-5, 12)), "y": perhaps(draw.randrange(-5, 12)),
            "s": perhaps("".join(draw.choice("abmz") for _ in range(draw.randrange(4)))),
            "f": perhaps(draw.choice([0.0, -0.0, math.nan, 1.5, -2.0, math.inf])), "g": perhaps(draw.choice([0.0, math.nan, 0.5, 3.0])),
            "n": perhaps(decimal.Decimal(draw.randrange(-3000, 9000)) / 1000), "d": perhaps(moment.date()), "t": perhaps(moment),
            "m": perhaps(moment.replace(microsecond=moment.microsecond // 1000 * 1000)),
            "z": perhaps(moment.replace(tzinfo=datetime.timezone.utc)), "b": perhaps(draw.random() < 0.5),
            "x": perhaps(bytes([draw.randrange(3)])), "c": perhaps(moment.time().replace(microsecond=0)),
            "r": perhaps({"a": perhaps(key % 7), "b": perhaps("q")}), "l": perhaps([perhaps(draw.randrange(3)) for _ in range(draw.randrange(3))]),
        }  # fmt: skip


@pytest.fixture(scope="module")
def catalog(tmp_path_factory):
    made = new_catalog(str(tmp_path_factory.mktemp("w")))
    draw = random.Random(20_241_128)
    for name, kind in KINDS.items():
        table = made.create_table(f"d.{name}", Schema(COLUMNS), **kind)
        for count in (120, 60, 40):
            table.write_arrow(list(some_rows(draw, count)))
        table.delete("k > 100")
    return made


@pytest.fixture(scope="module")
def memory(catalog):
    """The same rows in memory, of each snapshot."""
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'").fetchall()
    connection.execute("CREATE SCHEMA d").fetchall()
    for name in KINDS:
        table = catalog.table(f"d.{name}")
        for state in [None, *(snapshot.id for snapshot in table.snapshots())]:
            rows = table.scan(snapshot_id=state).to_arrow()
            shown = name if state is None else f"{name}_{state}"
            connection.register("rows", rows)
            connection.execute(f"CREATE TABLE d.{shown} AS SELECT * FROM rows").fetchall()
            connection.unregister("rows")
    return connection


def condition(draw, alias, other):
    text = draw.choice(CONDITIONS).replace("{a}", alias).replace("{other}", other)
    while "{int}" in text:
        text = text.replace("{int}", str(draw.randrange(-3, 10)), 1)
    text = text.replace("{part}", draw.choice("abcd"))
    more = draw.random()
    if more < 0.25:
        return f"({text} AND {condition(draw, alias, other)})"
    if more < 0.4:
        return f"({text} OR {condition(draw, alias, other)})"
    return f"NOT ({text})" if more < 0.5 else text


def source(draw, catalog):
    """A table as both sides name it."""
    name = draw.choice(list(KINDS))
    if draw.random() < 0.7:
        return f"d.{name}", f"d.{name}"
    state = draw.choice(catalog.table(f"d.{name}").snapshots()).id
    return draw.choice([f"d.{name} FOR VERSION AS OF {state}", f"d.{name} VERSION AS OF '{state}'"]), f"d.{name}_{state}"


def random_query(seed, catalog):
    """A query for the catalog and the same one for the rows in memory."""
    draw = random.Random(seed)
    (ours, theirs), (others, their_others) = source(draw, catalog), source(draw, catalog)
    kind, where = draw.randrange(6), condition(draw, "a", "{more}")
    shown = ", ".join(f"a.{name} AS c{at}" for at, name in enumerate(draw.sample(VALUES, draw.randrange(1, 5))))
    sums = ", ".join(f"{text} AS n{at}" for at, text in enumerate(draw.sample(SUMS, 3))).replace("{a}", "a")
    texts = [
        f"SELECT {shown} FROM {{one}} AS a WHERE {where}",
        f"SELECT a.p, a.i, {sums} FROM {{one}} AS a WHERE {where} GROUP BY ALL",
        f"SELECT {sums} FROM {{one}} a JOIN {{two}} b ON a.k = b.k AND a.p = b.p WHERE {where}",
        f"WITH w AS (SELECT * FROM {{one}} AS a WHERE {where}) SELECT {shown} FROM w AS a LEFT JOIN {{two}} b USING (k) WHERE b.i > 2",
        f"SELECT a.k, a.i FROM {{one}} AS a WHERE {where} ORDER BY a.k, a.i, a.p LIMIT {draw.randrange(20)} OFFSET {draw.randrange(3)}",
        f"SELECT a.k, a.s FROM {{one}} AS a WHERE {where} UNION SELECT b.k, b.p FROM {{two}} AS b WHERE b.i IS NOT NULL",
    ]
    return tuple(
        texts[kind].replace("{one}", one).replace("{two}", two).replace("{more}", one)
        for one, two in ((ours, others), (theirs, their_others))
    )


def sorted_rows(table: pa.Table):
    return sorted(repr(row) for row in table.to_pylist())


@pytest.mark.parametrize("share", range(10))
def test_random_queries_have_the_answers_of_rows_in_memory(catalog, memory, share):
    for seed in range(share * 30, share * 30 + 30):
        ours, theirs = random_query(seed, catalog)
        found, expected = catalog.sql(ours).to_arrow(), memory.sql(theirs).to_arrow_table()
        assert found.schema.names == expected.schema.names, (seed, ours)
        assert sorted_rows(found) == sorted_rows(expected), (seed, ours)
