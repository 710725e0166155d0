"""Conditions on calculated values: the rows that DuckDB finds for the same text, in every place where conditions stand."""

from __future__ import annotations

import random
from datetime import date, datetime
from decimal import Decimal

import duckdb
import pyarrow as pa
import pytest
from unit.public import new_catalog

from paimon_py import UpdateColumnType, UsageError, col, sql

NAN = float("nan")
SCHEMA = pa.schema([
    pa.field("k", pa.int64(), nullable=False), pa.field("p", pa.string(), nullable=False), ("n", pa.int64()), ("i", pa.int16()),
    ("f", pa.float64()), ("d", pa.decimal128(9, 2)), ("s", pa.string()), ("t", pa.string()), ("b", pa.bool_()),
])  # fmt: skip
TEXTS = [None, "", "a", "Ab", " ab ", "b%", "x_y", "äÖ", "aab", "AB"]


def some_rows(draw: random.Random, count: int) -> pa.Table:
    """Rows with NULL, NaN and strings in both cases."""
    pick = draw.choice
    columns = {
        "k": list(range(count)), "p": [pick(["x1", "x2", "y1"]) for _ in range(count)],
        "n": [pick([None, 0, 1, -3, 7, 1_000_000]) for _ in range(count)], "i": [pick([None, 0, 2, -5, 32767]) for _ in range(count)],
        "f": [pick([None, NAN, 0.5, -2.5, 3.0, 1e9, float("inf")]) for _ in range(count)],
        "d": [pick([None, Decimal("0.00"), Decimal("1.25"), Decimal("-7.50")]) for _ in range(count)],
        "s": [pick(TEXTS) for _ in range(count)], "t": [pick(TEXTS) for _ in range(count)], "b": [pick([None, True, False]) for _ in range(count)],
    }  # fmt: skip
    return pa.table(columns, SCHEMA)


class Texts:
    """Draws conditions that mean the same in DuckDB: without division by zero, and with `||` for concat, which skips NULL there."""

    def __init__(self, draw: random.Random) -> None:
        self.draw = draw

    def number(self, depth: int) -> str:
        leaf = ["n", "i", "f", "d", "2", "-1", "0.5", "k"]
        if depth <= 0:
            return self.draw.choice(leaf)
        a, b = self.number(depth - 1), self.number(depth - 1)
        whole = self.draw.choice(["n", "i", "k", "(n + i)", "(i - 1)", "(k * 2)"])
        return self.draw.choice([
            *leaf[:4], f"({a} + {b})", f"({a} - {b})", f"({whole} * {self.draw.choice(['i', '2', '-1'])})", f"(-{a})", f"abs({a})",
            f"({whole} / nullif({self.draw.choice(['n', 'i', '4'])}, 0))", f"coalesce({a}, {b})", f"({whole} % nullif(i, 0))", "(f % 2)", f"greatest({whole}, i)", f"least(n, {whole}, 3)",
            f"length({self.text(depth - 1)})", f"floor({a})", f"ceil({a})", f"nullif({whole}, 1)", "round(d, 1)", "round(f)",
            f"CASE WHEN {self.condition(depth - 1)} THEN {whole} ELSE 1 END", f"CASE i WHEN 2 THEN {a} WHEN 0 THEN {a} END",
        ])  # fmt: skip

    def text(self, depth: int) -> str:
        if depth <= 0:
            return self.draw.choice(["s", "t", "p", "'ab'", "''"])
        a, b = self.text(depth - 1), self.text(depth - 1)
        return self.draw.choice([
            "s", "t", f"upper({a})", f"lower({a})", f"({a} || {b})", f"trim({a})", f"ltrim({a})", f"rtrim({a})", f"substring({a}, 2)",
            f"substring({a}, 1, 2)", f"replace({a}, 'a', 'zz')", f"coalesce({a}, {b})", f"nullif({a}, {b})", f"greatest({a}, {b})",
            f"CASE WHEN {self.condition(depth - 1)} THEN {a} ELSE {b} END",
        ])  # fmt: skip

    def condition(self, depth: int) -> str:
        if depth <= 0:
            return self.draw.choice(["b", "n > 0", "s = 'a'", "f IS NULL", "NOT b"])
        a, b, x, y = self.number(depth), self.number(depth), self.text(depth), self.text(depth)
        sign = self.draw.choice(["=", "<>", "<", "<=", ">", ">="])
        no = self.draw.choice(["", "NOT "])
        return self.draw.choice([
            f"{a} {sign} {b}", f"{x} {sign} {y}", f"{a} {sign} 3", f"'ab' {sign} {x}", f"{a} {no}IN (0, 2, 1.5)", f"{x} {no}IN ('ab', 'A', NULL)",
            f"{a} IS {no}NULL", f"{x} IS {no}NULL", f"{a} {no}BETWEEN -2 AND {b}", f"{x} {no}LIKE 'a%'", f"{x} {no}ILIKE '%B'",
            f"{a} IS {no}DISTINCT FROM {b}", f"{x} IS {no}DISTINCT FROM {y}", f"coalesce(b, {self.draw.choice(['TRUE', 'FALSE'])})",
            f"NOT ({self.condition(depth - 1)})", f"({self.condition(depth - 1)} AND {self.condition(depth - 1)})",
            f"({self.condition(depth - 1)} OR {self.condition(depth - 1)})", f"starts_with({x}, 'a')", f"contains({x}, 'b')",
        ])  # fmt: skip


def check(table, rows: pa.Table, seed: int, count: int, act) -> None:
    draw = random.Random(seed)
    connection = duckdb.connect()
    connection.register("rows", rows.set_column(3, "i", rows["i"].cast("int64")))  # DuckDB calculates SMALLINT as such
    for _ in range(count):
        text = Texts(draw).condition(draw.randint(1, 3))
        wanted = [key for (key,) in connection.execute(f"SELECT k FROM rows WHERE {text} ORDER BY k").fetchall()]
        assert act(table, text) == wanted, text


def scan_and_count(table, text: str) -> list[int]:
    scan = table.scan(columns=["k"], where=text)
    found = sorted(scan.to_arrow()["k"].to_pylist())
    assert scan.count() == len(found)
    return found


@pytest.mark.parametrize("key", [("p", "k"), ()], ids=["key", "append"])
def test_the_rows_are_those_of_duckdb(tmp_path, key):
    rows = some_rows(random.Random(1), 60)
    options = {"bucket": "2"} if key else {}
    table = new_catalog(tmp_path).create_table("d.t", SCHEMA, primary_key=list(key), partition_by=["p"], options=options)
    table.write_arrow(rows.slice(0, 40))
    table.write_arrow(rows.slice(20, 40) if key else rows.slice(40))
    check(table, rows, 7 + len(key), 20, scan_and_count)


@pytest.mark.parametrize("seed", range(12))
def test_negation_stops_at_a_value(tmp_path, seed):
    """A CASE takes NULL for FALSE, so that its negation is true exactly where its condition is not."""
    rows = some_rows(random.Random(seed), 40)
    table = new_catalog(tmp_path).create_table("d.t", SCHEMA)
    table.write_arrow(rows)
    texts = Texts(random.Random(100 + seed))
    for _ in range(8):
        text = texts.condition(2)
        true = scan_and_count(table, text)
        rest = [key for key in range(40) if key not in true]
        for case in (f"CASE WHEN {text} THEN TRUE ELSE FALSE END", f"CASE WHEN NOT (NOT ({text})) THEN 2 ELSE 1 END > 1"):
            assert scan_and_count(table, case) == true, case
            assert scan_and_count(table, f"NOT ({case})") == rest, case
            assert scan_and_count(table, f"NOT (NOT ({case}) OR k < 0)") == true, case


def ids(table) -> list[int]:
    return sorted(table.to_arrow()["id"].to_pylist())


ITEMS = pa.schema([pa.field("id", pa.int64(), nullable=False), ("n", pa.int64()), ("s", pa.string()), ("v", pa.int32())])


def items(tmp_path, **how):
    table = new_catalog(tmp_path).create_table("d.t", ITEMS, **how)
    table.write_arrow(pa.table({"id": [1, 2, 3, 4], "n": [0, 5, None, 8], "s": ["Ann", "bob", None, "ANN"], "v": [1, 1, 2, 2]}, ITEMS))
    return table


KINDS = [{}, {"options": {"deletion-vectors.enabled": "true"}}, {"primary_key": ["id"], "options": {"bucket": "1"}}]


@pytest.mark.parametrize("how", KINDS, ids=["append", "vectors", "key"])
def test_every_verb_takes_them(tmp_path, how):
    table = items(tmp_path, **how)
    assert table.update("lower(s) = 'ann' AND id * 2 > 2", {"n": sql("n + 1")}).updated == 1
    assert table.scan(where=col("n") / 3 == 3).to_arrow()["id"].to_pylist() == [4]
    assert table.delete(sql("length(s)") * 2 == 6).deleted == 3
    assert ids(table) == [3]
    source = pa.table({"id": [3, 9], "n": [10, 20], "s": ["x", "Yy"], "v": [2, 2]}, ITEMS)
    found = table.merge(
        source, ["id"],
        when_matched_update=("source.n / 2 > coalesce(target.n, 0)", {"n": col("source.n")}),
        when_not_matched_insert=("upper(source.s) <> source.s", True),
    )  # fmt: skip
    assert (found.updated, found.inserted) == (1, 1)
    assert sorted(table.to_arrow()["n"].to_pylist()) == [10, 20]


@pytest.mark.parametrize("how", KINDS, ids=["append", "vectors", "key"])
def test_a_row_that_cannot_be_decided_is_an_error_unless_others_decide_it_or_it_is_gone(tmp_path, how):
    table = items(tmp_path, **how)
    for where in ("10 / n > 1", "n = 5 OR 10 / n > 1", "NOT 10 / n > 1", "CASE WHEN 10 / n > 1 THEN TRUE ELSE FALSE END"):
        with pytest.raises(UsageError, match=r"10 / 0 \(row \d of a batch\) divides by zero; write a / nullif\(b, 0\) for NULL"):
            table.scan(where=where).to_arrow()
    assert sorted(table.scan(where="10 / n > 1 AND n <> 0").to_arrow()["id"].to_pylist()) == [2, 4]
    assert sorted(table.scan(where="10 / n > 1.5 OR n = 0 OR n IS NULL").to_arrow()["id"].to_pylist()) == [1, 2, 3]
    assert table.scan(where="10 / nullif(n, 0) > 1").count() == 2
    with pytest.raises(UsageError, match="divides by zero"):
        table.delete("10 / n > 1")
    table.delete("n = 0")
    assert table.scan(where="10 / n > 1").count() == 2


def test_keys_of_deleted_rows_are_not_calculated(tmp_path):
    table = items(tmp_path, primary_key=["id"], options={"bucket": "1"})
    table.write_arrow(pa.table({"id": [0, 7], "n": [1, 1], "s": ["a", "b"], "v": [1, 1]}, ITEMS))
    table.delete("id = 0")  # a row of kind -D, which reading meets before the merge
    assert sorted(table.scan(where="14 / id > 3").to_arrow()["id"].to_pylist()) == [1, 2, 3, 4]
    assert table.scan(where="14 / id > 3").count() == 4


def test_partitions_are_pruned_and_those_without_rows_are_not_calculated(tmp_path):
    table = items(tmp_path, partition_by=["v"], options={"deletion-vectors.enabled": "true"})
    table.write_arrow(pa.table({"id": [9], "n": [1], "s": ["a"], "v": [0]}, ITEMS))
    where = "CASE WHEN v = 1 THEN 'one' ELSE 'other' END = 'one'"
    assert table.scan(where=where).count() == 2
    assert len(table.scan(where=where).splits()) == len(table.scan(where="v = 1").splits())
    with pytest.raises(UsageError, match="divides by zero"):
        table.scan(where="2 / v > 1").count()
    table.delete("v = 0")
    assert table.scan(where="2 / v > 1").count() == 2
    assert table.scan(where="2 / v > 1 AND id > 1").to_arrow()["id"].to_pylist() == [2]
    before = table.snapshot().id
    table.compact(where="v + 1 = 3", full=True)
    assert table.snapshot().id >= before


def test_system_tables_changes_and_streams_take_them(tmp_path):
    table = items(tmp_path, primary_key=["id"], options={"bucket": "1", "changelog-producer": "input"})
    assert table.system("snapshots").scan(where="snapshot_id * 2 = 2").to_arrow().num_rows == 1
    table.write_arrow(pa.table({"id": [5, 6], "n": [50, 60], "s": ["e", "f"], "v": [1, 1]}, ITEMS))
    with pytest.raises(UsageError, match="divides by zero"):
        table.changes(0, 1, where="10 / n > 1").to_arrow()
    assert table.changes(0, 1, where="10 / n > 1 AND n <> 0").to_arrow().num_rows == 2
    assert table.changes(0, 2, where="n / 10 = 6").to_arrow()["id"].to_pylist() == [6]
    assert table.changes(0, 2, where="lower(_row_kind) = '+i' AND n > 50").to_arrow()["id"].to_pylist() == [6]


def test_the_types_of_columns_and_parts_of_rows_are_calculated(tmp_path):
    schema = pa.schema([
        ("id", pa.int64()), ("pos", pa.struct([("x", pa.int32())])), ("day", pa.date32()), ("at", pa.timestamp("ms")),
        ("raw", pa.binary()), ("f", pa.float32()), ("d", pa.decimal128(20, 5)), ("l", pa.list_(pa.int32())),
    ])  # fmt: skip
    table = new_catalog(tmp_path).create_table("d.t", schema)
    row = {"id": 1, "pos": {"x": 4}, "day": date(2024, 5, 1), "at": datetime.fromisoformat("2024-05-01T10:00:00"), "raw": b"ab", "f": 0.5, "d": Decimal("1.5")}
    table.write_arrow([row, {"id": 2}])
    for where, count in [
        ("pos.x * 2 = 8", 1), ("coalesce(day, DATE '2020-01-01') < DATE '2024-01-01'", 1), ("greatest(day, DATE '2020-01-01') >= '2024-05-01'", 1),
        ("coalesce(at, TIMESTAMP '2020-01-01 00:00:00') > TIMESTAMP '2024-01-01 00:00:00'", 1), ("coalesce(raw, X'00') = X'00'", 1),
        ("f * 2 = 1", 1), ("d * d = 2.25", 1), ("d * d * 3 > d", 1), ("d * d > d - 1e20", 1), ("coalesce(pos.x, 0) = 0", 1), ("d * d IS NULL", 1),
    ]:  # fmt: skip
        assert table.scan(where=where).count() == count, where
    with pytest.raises(UsageError, match="ARRAY, which has no order"):
        table.scan(where="coalesce(l, id) = 1").count()


def test_the_greatest_and_least_of_booleans_and_zoned_times_are_found(tmp_path):
    schema = pa.schema([("id", pa.int64()), ("b", pa.bool_()), ("c", pa.bool_()), ("z", pa.timestamp("us", "UTC")), ("y", pa.timestamp("ms", "UTC"))])
    table = new_catalog(tmp_path).create_table("d.t", schema)
    early, late = datetime.fromisoformat("2024-05-01T10:00:00+00:00"), datetime.fromisoformat("2024-05-01T10:00:00.5+00:00")
    table.write_arrow([{"id": 1, "b": True, "c": False, "z": early, "y": late}, {"id": 2, "b": False, "z": late}, {"id": 3}])
    for where, ids in [
        ("greatest(z, y) = y", [1]), ("least(z, y) = z", [1, 2]), ("greatest(z, TIMESTAMP '2024-05-01 10:00:00.1Z') = z", [2]),
        ("least(z, now()) IS NULL", []), ("greatest(b, c)", [1]), ("least(b, c) = FALSE", [1, 2]), ("greatest(b, c) IS NULL", [3]),
    ]:  # fmt: skip
        assert sorted(table.scan(where=where).to_arrow()["id"].to_pylist()) == ids, where
    table.update("id = 1", {"z": sql("greatest(z, y)"), "b": sql("least(b, c)")})
    assert table.scan(where="id = 1").to_arrow().select(["z", "b"]).to_pylist() == [{"z": late, "b": False}]


def test_files_of_older_schemas_are_read_first(tmp_path):
    table = items(tmp_path)
    table.alter(UpdateColumnType("v", "BIGINT"))
    table.write_arrow(pa.table({"id": [8], "n": [1], "s": ["zz"], "v": [2**40]}))
    assert sorted(table.scan(where="v * 2 > 3").to_arrow()["id"].to_pylist()) == [3, 4, 8]
    assert sorted(table.scan(where="v * 2 > 3 AND v < 5").to_arrow()["id"].to_pylist()) == [3, 4]


def test_values_that_are_shown_alike_are_compared(tmp_path):
    table = items(tmp_path)
    long, many = "x" * 250, ", ".join(map(str, range(100, 120)))
    one, other = f"s || '{long}a'", f"s || '{long}b'"
    assert [table.scan(where=f"{one} {sign} {other}").count() for sign in ("=", "<")] == [0, 3]
    one, other = (f"CASE WHEN n IN ({many}, {number}) THEN 1 ELSE 0 END" for number in (5, 8))
    assert sorted(table.scan(where=f"{one} <> {other}").to_arrow()["id"].to_pylist()) == [2, 4]


def test_a_case_that_cannot_be_decided_excludes_no_partition(tmp_path):
    table = items(tmp_path, partition_by=["v"])
    table.write_arrow(pa.table({"id": [9], "n": [1], "s": ["a"], "v": [0]}, ITEMS))
    where = "CASE WHEN 2 / v > 1 THEN TRUE ELSE FALSE END"
    assert table.scan(where=f"id < 9 AND {where}").to_arrow()["id"].to_pylist() == [1, 2]
    for text in (where, "2 / v > 1"):
        with pytest.raises(UsageError, match=r'^\(2 / col\("v"\)\) > .* cannot be decided: 2 / 0 .* divides by zero'):
            table.scan(where=text).count()
