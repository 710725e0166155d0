"""Statistics and expired partitions of Java's tables."""

from __future__ import annotations

import json
from datetime import datetime

import golden
import pytest
from locate import CORPUS

from paimon_py import Catalog

ANALYZED = [
    case for case in golden.cases(str(CORPUS)) if any(read.get("table", "").endswith("$statistics") for read in case.reads)
]
KEYS = {"colId": "column_id", "distinctCount": "distinct_count", "nullCount": "null_count", "avgLen": "avg_len", "maxLen": "max_len"}


@pytest.mark.parametrize("case", ANALYZED, ids=lambda case: case.name)
def test_statistics_are_those_that_java_reads(case, tmp_path):
    table = Catalog.open(golden.unpack(case, tmp_path)).table(case.table)
    (read,) = [read for read in case.reads if read.get("table", "").endswith("$statistics")]
    ((snapshot_id, schema_id, count, size, columns),) = read["rows"]
    found = table.statistics()
    assert (found.snapshot_id, found.schema_id) == (snapshot_id, schema_id)
    assert (found.merged_record_count, found.merged_record_size) == (count, size)
    for name, column in json.loads(columns).items():
        ours = found.columns[name]
        assert {key: getattr(ours, field) for key, field in KEYS.items() if getattr(ours, field) is not None} == {
            key: value for key, value in column.items() if key in KEYS
        }
        assert (str(ours.min), str(ours.max)) == (column["min"], column["max"])
    again = table.analyze(list(found.columns))
    assert {name: column.distinct_count for name, column in again.columns.items()}.keys() == found.columns.keys()
    assert again.merged_record_count == table.scan().count()


def test_the_same_partitions_expire_as_by_java(tmp_path):
    (case,) = [case for case in golden.cases(str(CORPUS)) if case.name == "partition-expire"]
    table = Catalog.open(golden.unpack(case, tmp_path)).table(case.table)
    left = table.scan().to_arrow()
    table.rollback_to(1)
    result = table.expire_partitions(older_than=datetime.fromisoformat("2024-01-18T00:00:00"))
    assert [one["dt"] for one in result.partitions] == [f"2024-01-{day}" for day in range(10, 18)]
    assert sorted(table.scan().to_arrow().to_pylist(), key=str) == sorted(left.to_pylist(), key=str)
    ours, theirs = table.snapshot(2).value, case.data["snapshots"][1]
    assert (ours.commit_kind, ours.total_record_count, ours.delta_record_count) == ("OVERWRITE", theirs["totalRecordCount"], theirs["deltaRecordCount"])


LISTED = [
    case for case in golden.cases(str(CORPUS)) if any(read.get("table", "").endswith("$partitions") for read in case.reads)
]


@pytest.mark.parametrize("case", LISTED, ids=lambda case: case.name)
def test_partitions_are_those_that_java_lists(case, tmp_path):
    table = Catalog.open(golden.unpack(case, tmp_path)).table(case.table)
    for read in case.reads:
        names = [name for name, _ in read["schema"]]
        if not read.get("table", "").endswith("$partitions") or "filter" in read or "record_count" not in names:
            continue
        theirs = [dict(zip(names, row)) for row in read["rows"]]
        ours = {"/".join(f"{key}={value}" for key, value in one.partition.items()): one for one in table.partitions()}
        assert sorted(ours) == sorted(row["partition"] for row in theirs)
        for row in theirs:
            one = ours[row["partition"]]
            assert (one.record_count, one.file_count) == (row["record_count"], row["file_count"])
            assert one.file_size_in_bytes == row["file_size_in_bytes"]
            assert one.last_file_creation_time == datetime.fromisoformat(row["last_update_time"])
            assert one.total_buckets == row.get("total_buckets", one.total_buckets)
