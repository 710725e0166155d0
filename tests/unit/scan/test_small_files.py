"""Small files and sections that are read and merged together: the rows of splits read alone, in the same order."""

from __future__ import annotations

import os
import random
from datetime import datetime, timezone
from decimal import Decimal

import pyarrow as pa
import pytest

from paimon_py import AddColumn, Catalog, CorruptionError, DropColumn, RenameColumn, UpdateColumnType, col
from paimon_py.files import small_files
from paimon_py.scan import parcel, small_splits

PARTITIONS = 4
TYPES = {
    "tiny": pa.int8(), "flag": pa.bool_(), "money": pa.decimal128(12, 2), "day": pa.date32(),
    "at": pa.timestamp("us"), "zoned": pa.timestamp("ms", "UTC"), "exact": pa.timestamp("ns"), "ratio": pa.float64(),
    "raw": pa.binary(), "items": pa.list_(pa.int32()), "inner": pa.struct([("x", pa.int64()), ("y", pa.string())]),
    "counts": pa.map_(pa.string(), pa.int32()),
}  # fmt: skip
ENGINES = {
    "append": ([], {}),
    "append buckets": ([], {"bucket": "2", "bucket-key": "k"}),
    "deduplicate": (["p", "k"], {}),
    "buckets": (["p", "k"], {"bucket": "2"}),
    "sequence": (["p", "k"], {"sequence.field": "v"}),
    "partial-update": (["p", "k"], {"merge-engine": "partial-update"}),
    "aggregation": (["p", "k"], {"merge-engine": "aggregation", "fields.v.aggregate-function": "sum"}),
    "first-row": (["p", "k"], {"merge-engine": "first-row", "write-only": "false"}),
    "deletion-vectors": (["p", "k"], {"deletion-vectors.enabled": "true", "write-only": "false"}),
    "text keys": (["p", "s"], {}),
    "orc": (["p", "k"], {"file.format": "orc"}),
    "avro": ([], {"file.format": "avro"}),
    "thin": (["p", "k"], {"data-file.thin-mode": "true"}),
}


def rows(seed, keys, count):
    rng = random.Random(seed)

    def some(value):
        return [None if rng.random() < 0.2 else value(rng.randrange(1000)) for _ in range(count)]

    columns = {
        "p": pa.array([rng.randrange(PARTITIONS) for _ in range(count)], pa.int32()),
        "k": pa.array([rng.randrange(60) for _ in range(count)], pa.int64()),
        "v": pa.array(some(int), pa.int64()),
        "s": pa.array([f"key {rng.randrange(60)}" for _ in range(count)]),
        "tiny": some(lambda n: n % 100), "flag": some(lambda n: n > 500),
        "money": some(lambda n: Decimal(n) / 100), "day": some(int), "at": some(lambda n: n * 10**9),
        "zoned": some(lambda n: datetime.fromtimestamp(n, timezone.utc)), "exact": some(lambda n: n * 10**15 + 1),
        "ratio": some(lambda n: float("nan") if n % 3 == 0 else n / 7), "raw": some(lambda n: bytes(n % 5)),
        "items": some(lambda n: [None, n][n % 2 :] * (n % 3)), "inner": some(lambda n: {"x": n, "y": str(n)}),
        "counts": some(lambda n: {str(n): None, "b": n}),
    }  # fmt: skip
    fields = [pa.field(name, TYPES.get(name) or columns[name].type, name not in keys) for name in columns]
    return pa.table([pa.array(column, field.type) for column, field in zip(columns.values(), fields, strict=True)],
                    schema=pa.schema(fields))  # fmt: skip


def table_of(kind, root):
    keys, options = ENGINES[kind]
    catalog = Catalog.open(root)
    catalog.create_database("d")
    options = {"bucket": "1" if keys else "-1", "write-only": "true", **options}
    schema = written(kind, 0, 1).schema
    table = catalog.create_table("d.t", schema, primary_key=keys, partition_by=["p"], options=options)
    for seed in range(3):
        table.write_arrow(written(kind, seed, 60))
    if kind in ("append", "deduplicate", "buckets", "deletion-vectors", "text keys", "orc"):
        table.delete(where=col("v").between(100, 250))
        table.write_arrow(written(kind, 9, 30))
    return table


def written(kind, seed, count):
    made = rows(seed, ENGINES[kind][0], count)
    return made.drop_columns(["exact"]) if kind == "avro" else made


@pytest.fixture(scope="module", params=ENGINES)
def kind_and_table(request, tmp_path_factory):
    return request.param, table_of(request.param, tmp_path_factory.mktemp("w"))


@pytest.fixture
def decoded(monkeypatch):
    """The numbers of files that were decoded together."""
    counts = []

    def read(*given):
        found = small_files.read_small(*given)
        counts.append(0 if found is None else len(found.places))
        return found

    monkeypatch.setattr(small_splits, "read_small", read)
    return counts


def compare(scan):
    """The rows of a scan, which are those of its splits read alone, in the same order."""
    alone = [batch for split in scan.splits() for batch in scan.read(split)]
    found = scan.to_arrow()
    assert found.num_rows == sum(batch.num_rows for batch in alone) == scan.count()
    if scan.schema.names:
        assert repr(found.to_pylist()) == repr(pa.Table.from_batches(alone, scan.schema).to_pylist())
    return found


READS = [
    (None, None), (None, ["v", "p"]), (None, []), (col("v") > 500, None), (col("k") <= 20, ["counts", "k"]),
    ((col("p") < 3) & (col("ratio") < 50), ["inner"]), (col("s") == "key 7", ["p"]), (col("items").is_null(), None),
]  # fmt: skip


def test_the_rows_are_those_of_splits_read_alone(kind_and_table, decoded):
    kind, table = kind_and_table
    for where, columns in READS[list(ENGINES).index(kind) % 2 :: 2]:
        compare(table.scan(where=where, columns=columns))
    assert (sum(decoded) > 0) == (kind not in ("orc", "avro")), "nothing was read together, or another format"


def test_columns_that_changed_since(tmp_path, decoded):
    table = table_of("deduplicate", tmp_path)
    table.alter(AddColumn("later", "BIGINT"), RenameColumn("raw", "bytes"), DropColumn("flag"))
    table.alter(UpdateColumnType("tiny", "INT"), UpdateColumnType("money", "DECIMAL(20, 2)"))
    keys = ENGINES["deduplicate"][0]
    new = rows(77, keys, 80).drop_columns(["flag"]).rename_columns(
        ["bytes" if name == "raw" else name for name in rows(0, keys, 1).column_names if name != "flag"]
    )  # fmt: skip
    table.write_arrow(new.append_column("later", pa.array(range(80), pa.int64())))
    assert {type(value) for value in compare(table.scan())["later"].to_pylist()} == {int, type(None)}
    compare(table.scan(where=(col("tiny") > 50) | (col("later") < 40), columns=["later", "bytes", "k"]))
    assert sum(decoded) > 0


def test_a_damaged_or_missing_file_is_named_as_when_it_is_read_alone(tmp_path):
    table = table_of("sequence", tmp_path)
    victim = sorted(_data_files(table))[7]
    with open(victim, "rb") as source:
        data = source.read()
    half = len(data) // 2
    for damaged in (data[:half] + b"x" * (len(data) - half), data[:20] + b"\0" * (half - 20) + data[half:]):
        with open(victim, "wb") as sink:
            sink.write(damaged)
        with pytest.raises(CorruptionError, match=os.path.basename(victim)):
            table.scan().to_arrow()
    os.remove(victim)
    with pytest.raises(CorruptionError, match=os.path.basename(victim)):
        table.scan().to_arrow()


def _data_files(table):
    return [
        os.path.join(place, name)
        for place, _, names in os.walk(table.location) for name in names if name.startswith("data-")
    ]  # fmt: skip


def test_sections_are_merged_one_by_one_if_a_merge_finds_keys_out_of_order(tmp_path, monkeypatch):
    table = table_of("sequence", tmp_path)
    expected = table.scan().to_arrow()
    asked = []

    def merge(sources, plan):
        asked.append(plan)
        raise CorruptionError("keys do not grow", path=sources[0].name)

    monkeypatch.setattr(parcel, "merge", merge)
    assert repr(table.scan().to_arrow().to_pylist()) == repr(expected.to_pylist())
    assert asked


def test_limits_read_few_files(tmp_path, decoded):
    table = table_of("append", tmp_path)
    assert table.scan(limit=3).to_arrow().num_rows == 3
    assert not decoded
