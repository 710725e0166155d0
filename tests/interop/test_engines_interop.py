"""Flink and Spark read a table that we wrote, and we read what they add."""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys

import pytest
from pair import Kind, Pair
from values import canonical_rows, difference

pytestmark = [pytest.mark.java, pytest.mark.full]

ENGINES = pathlib.Path(__file__).parents[2].parent / "shared" / "engines"
COLUMNS = [["d", "DATE NOT NULL"], ["k", "BIGINT NOT NULL"], ["v", "STRING"], ["n", "DECIMAL(24, 4)"], ["t", "TIMESTAMP(6)"],
           ["a", {"type": "ARRAY", "element": "INT"}]]  # fmt: skip
ROWS = [{"d": f"2024-05-{1 + k % 2:02d}", "k": k, "v": f"é{k}", "n": f"{k}.5000", "t": "2024-01-02T03:04:05.000001", "a": [k, None]} for k in range(8)]


class EnginePair(Pair):
    """A table in the `default` database, without a Java session."""

    def __init__(self, warehouse: pathlib.Path) -> None:
        super().__init__(None, warehouse)
        self.name, self.path = "default.t", pathlib.Path(warehouse) / "default.db" / "t"


def sql(script: str, warehouse: pathlib.Path, *statements: str) -> list[dict]:
    if not ENGINES.is_dir():
        pytest.skip(f"no engine launchers at {ENGINES}")
    command = [sys.executable, str(ENGINES / script), "--warehouse", str(warehouse), *statements]
    made = subprocess.run(command, capture_output=True, text=True, timeout=570)
    assert made.returncode == 0, made.stdout + made.stderr[-3000:]
    return [json.loads(line) for line in made.stdout.splitlines()]


@pytest.mark.parametrize("script", ["flink_sql.py", "spark_sql.py"])
def test_an_engine_reads_our_table_and_we_read_what_it_adds(script, tmp_path):
    from paimon_py import Catalog, Schema

    pair = EnginePair(tmp_path)
    kind = Kind(COLUMNS, ["d", "k"], ["d"], {"bucket": "2"})
    catalog = Catalog.open(str(tmp_path))
    catalog.create_database("default")
    catalog.create_table(pair.name, Schema([tuple(c) for c in COLUMNS]), primary_key=kind.primary_key, partition_by=kind.partition_by, options=kind.options)
    pair.our_write(ROWS)
    pair.our_write([{**ROWS[3], "v": "again"}, {**ROWS[4], "_kind": "-D"}])
    rows = [row | ({"v": "again"} if row["k"] == 3 else {}) for row in ROWS if row["k"] != 4]
    columns = ["k", "v", "n"]
    answers = sql(
        script, tmp_path,
        "SELECT k, v, CAST(n AS STRING) FROM t ORDER BY k",
        "SELECT k, v, CAST(n AS STRING) FROM t WHERE k > 5 AND d = DATE '2024-05-01' ORDER BY k",
        "INSERT INTO t VALUES (DATE '2024-05-03', CAST(100 AS BIGINT), 'engine', 1.5, TIMESTAMP '2024-01-02 03:04:05.000001', ARRAY[7])"
        if script == "flink_sql.py"
        else "INSERT INTO t VALUES (DATE '2024-05-03', 100L, 'engine', 1.5, TIMESTAMP_NTZ '2024-01-02 03:04:05.000001', array(7))",
    )  # fmt: skip
    assert answers[0]["rows"] == [[row[name] for name in columns] for row in rows]
    assert [row[0] for row in answers[1]["rows"]] == [6]
    added = {"d": "2024-05-03", "k": 100, "v": "engine", "n": "1.5000", "t": "2024-01-02T03:04:05.000001", "a": [7]}
    want = canonical_rows(COLUMNS, [*rows, added])
    assert difference(COLUMNS, want, pair.our_rows(COLUMNS)) is None


def test_spark_plans_with_our_statistics_and_finds_the_same(tmp_path):
    import datetime

    import pyarrow as pa

    from paimon_py import Catalog, Schema

    catalog = Catalog.open(str(tmp_path))
    catalog.create_database("default")
    columns = [("k", "INT NOT NULL"), ("s", "STRING"), ("x", "DOUBLE"), ("n", "DECIMAL(30, 2)"), ("d", "DATE"), ("b", "BYTES"),
               ("t", "TIMESTAMP(6) WITH LOCAL TIME ZONE"), ("o", "BOOLEAN"), ("f", "FLOAT"), ("i", "SMALLINT")]  # fmt: skip
    moment = datetime.datetime(2024, 2, 29, 1, 2, 3, 450_001, datetime.timezone.utc)
    for name in ("ours", "theirs"):
        table = catalog.create_table(f"default.{name}", Schema(columns), primary_key=["k"], options={"bucket": "2"})
        for first in (0, 100):
            rows = [
                {"k": first + i, "s": None if i % 7 == 0 else "é" * (i % 5), "x": None if i == 3 else i / 3, "n": i * 10**20,
                 "d": moment.date() + datetime.timedelta(days=i - 9999), "b": b"x" * (i % 4),
                 "t": moment + datetime.timedelta(seconds=i), "o": i % 2 == 0, "f": float(i), "i": i % 11}
                for i in range(300)
            ]  # fmt: skip
            table.write_arrow(pa.Table.from_pylist(rows, table.scan().schema))
    found = catalog.table("default.ours").analyze(all_columns=True)
    names = ", ".join(name for name, _ in columns)
    plan = sql("spark_sql.py", tmp_path, f"ANALYZE TABLE theirs COMPUTE STATISTICS FOR COLUMNS {names}", "EXPLAIN COST SELECT * FROM ours")[1]
    assert "rowCount=400" in str(plan["rows"])
    theirs = catalog.table("default.theirs").statistics()
    assert theirs.merged_record_count == found.merged_record_count == 400
    for name, column in theirs.columns.items():
        ours = found.columns[name]
        assert abs(column.distinct_count / ours.distinct_count - 1) < 0.15, name
        facts = [(one.column_id, one.min, one.max, one.null_count, one.avg_len, one.max_len) for one in (ours, column)]
        assert facts[0] == facts[1], name
