"""Statistics: Java reads ours, we read Java's, and both find the same of a table."""

from __future__ import annotations

import json
import random

import pytest
from pair import Kind, Pair
from values import arrow_rows

from paimon_py.spec.statistics import ColumnStatistics

pytestmark = pytest.mark.java

TYPES = {
    "TINYINT": [1, -128, 127], "SMALLINT": [5, -6], "INT": [1, 2, -(2**31)], "BIGINT": [2**63 - 1, -5],
    "BOOLEAN": [True, False], "FLOAT": [1.5, -3.25, 1e20, "NaN", "Infinity"], "DOUBLE": [0.1, 1e-5, -1e300, "NaN"],
    "DECIMAL(10, 2)": ["1.50", "-0.01", "0.00"], "DECIMAL(30, 4)": ["12345678901234567890.1234", "-1.0000"],
    "DATE": ["2024-02-29", "1960-01-01", "1969-12-31"], "TIME(3)": ["12:34:56.789", "00:00:00"],
    "TIMESTAMP(0)": ["2024-02-29T01:02:03", "1969-12-31T23:59:59"], "TIMESTAMP(3)": ["2024-02-29T01:02:03.450"],
    "TIMESTAMP(6)": ["2024-02-29T01:02:03.450001", "1900-01-01T00:00:00"],
    "TIMESTAMP(9)": ["2024-02-29T01:02:03.000000001", "2024-02-29T01:02:03.100000000"],
    "TIMESTAMP(3) WITH LOCAL TIME ZONE": ["2024-02-29T01:02:03.450", "1969-12-31T00:00:00"],
    "STRING": ["a", "", "längerer Text", "b"], "CHAR(3)": ["abc", "x"], "VARBINARY(9)": ["00ff", ""],
}  # fmt: skip
NAMES = {f"c{number}": kind for number, kind in enumerate(TYPES)}
TEXTS = {name for name, kind in NAMES.items() if kind.split("(")[0] in ("STRING", "CHAR", "VARBINARY")}
VERSIONS = {"2.0.0": range(6), "1.4.2": range(6, 9), "0.9.0": range(9, 12)}


def made(version, seed, java, tmp_path) -> Pair:
    """A table of all types with some rows, by us."""
    rng = random.Random(seed)
    pair = Pair(java(version), tmp_path, "t")
    pair.create(Kind([["k", "INT NOT NULL"], *map(list, NAMES.items())], ["k"], options={"bucket": "1"}), "j")
    for _ in range(2):
        rows = [
            {"k": key, **{name: rng.choice([*TYPES[kind], None]) for name, kind in NAMES.items()}}
            for key in range(rng.randrange(1, 12))
        ]
        pair.table().write_arrow(arrow_rows(pair.table().schema, pair.columns(), rows, kinds=False))
    return pair


@pytest.mark.parametrize(
    ("version", "seed"),
    [
        pytest.param(version, seed, marks=() if seed == 0 else pytest.mark.full)
        for version, seeds in VERSIONS.items()
        for seed in seeds
    ],
)
def test_java_reads_ours_and_finds_the_same(version, seed, java, tmp_path):
    pair = made(version, seed, java, tmp_path)
    ours = pair.table().analyze(all_columns=True)
    latest = pair.step("snapshot")
    assert (latest["commitKind"], latest["deltaRecordCount"]) == ("ANALYZE", 0) and latest["statistics"].startswith("stat-")
    read = pair.step("statistics")
    assert (read["snapshotId"], read["schemaId"]) == (ours.snapshot_id, 0)
    assert (read["mergedRecordCount"], read["mergedRecordSize"]) == (ours.merged_record_count, ours.merged_record_size)
    assert read["colStats"] == json.loads((pair.path / "statistics" / latest["statistics"]).read_text())["colStats"]
    theirs = pair.step("analyze", columns=[name for name, kind in NAMES.items() if kind[:9] != "TIMESTAMP"])
    again = pair.table().statistics()
    assert again.snapshot_id == ours.snapshot_id + 1 and again.merged_record_count == ours.merged_record_count
    for name, other in again.columns.items():
        mine, kind = ours.columns[name], NAMES[name]
        assert (mine.column_id, mine.null_count) == (other.column_id, other.null_count), kind
        if kind.split("(")[0] != "VARBINARY":  # Java counts objects
            assert mine.distinct_count == other.distinct_count, kind
        if name not in TEXTS:
            assert repr((mine.min, mine.max)) == repr((other.min, other.max)), kind
    assert theirs["mergedRecordCount"] == ours.merged_record_count
    pair.step("write", rows=[{"k": 100}])
    assert repr(pair.table().statistics()) == repr(again), "Java takes statistics over"
    pair.table().analyze(["c2"])
    pair.step("write", rows=[{"k": 101}])
    assert list(pair.table().statistics().columns) == ["c2"]
    assert pair.step("statistics")["colStats"].keys() == {"c2"}
    pair.step("alter", changes=[["add", "x", "INT"]])
    pair.step("write", rows=[{"k": 102}])
    assert pair.step("statistics") is None and pair.table().statistics() is None
    found = pair.table().analyze(["x"])
    assert found.columns["x"] == ColumnStatistics(
        column_id=len(NAMES) + 1, distinct_count=0, null_count=found.merged_record_count, avg_len=4, max_len=4
    )
    assert pair.step("statistics")["colStats"]["x"]["nullCount"] == found.merged_record_count
    assert pair.agree()
