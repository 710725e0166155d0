"""Directories of files that were not written by Paimon."""

from __future__ import annotations

import datetime
import decimal

import fastavro
import pyarrow as pa
import pyarrow.orc
import pyarrow.parquet as pq

DAYS = ("2024-01-01", "2024-01-02", "__HIVE_DEFAULT_PARTITION__")
AVRO = {
    "type": "record", "name": "row", "fields": [
        {"name": "id", "type": "long"}, {"name": "s", "type": ["null", "string"]},
        {"name": "at", "type": ["null", {"type": "long", "logicalType": "timestamp-micros"}]},
        {"name": "n", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
        {"name": "d", "type": ["null", {"type": "int", "logicalType": "date"}]},
    ],
}  # fmt: skip


def rows(start, count=3):
    return pa.table({
        "id": pa.array(range(start, start + count), pa.int64()),
        "s": [None if number % 3 == 0 else f"text {number}" for number in range(start, start + count)],
        "f": pa.array([number / 2 for number in range(count)], pa.float32()),
        "n": pa.array([decimal.Decimal(number) / 4 for number in range(count)], pa.decimal128(10, 2)),
        "at": pa.array([datetime.datetime(2024, 1, 1, 12, 0, 0, number) for number in range(count)], pa.timestamp("us")),
    })


def write_parquet(path, table, **settings):
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, path, **settings)


def write_orc(path, table):
    path.parent.mkdir(parents=True, exist_ok=True)
    pyarrow.orc.write_table(table, str(path))


def write_avro(path, start):
    path.parent.mkdir(parents=True, exist_ok=True)
    zone = datetime.timezone.utc
    records = [
        {"id": start + at, "s": None if at else "x", "at": datetime.datetime(2024, 1, 1, tzinfo=zone), "n": decimal.Decimal("1.25"), "d": None}
        for at in range(3)
    ]
    with path.open("wb") as sink:
        fastavro.writer(sink, AVRO, records)


def partitioned(directory, write=write_parquet, ending="parquet"):
    """Two files of three rows for each of three days."""
    for at, day in enumerate(DAYS):
        for number in range(2):
            write(directory / f"dt={day}" / f"part-{number}.{ending}", rows(at * 10 + number * 3))
    (directory / "_SUCCESS").touch()
    return directory


def state(directory):
    """All files with their bytes."""
    return {path.relative_to(directory).as_posix(): path.read_bytes() for path in sorted(directory.rglob("*")) if path.is_file()}
