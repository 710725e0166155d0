"""The live files of Java's tables, decoded: partitions, levels, keys, statistics, sequence numbers, row counts."""

from __future__ import annotations

from pathlib import Path

import golden
import pyarrow as pa
import pytest
from locate import CORPUS

from paimon_py.codec.binary_row import decode
from paimon_py.codec.json import schema_from_json
from paimon_py.env import Env, SerialPool
from paimon_py.metadata.manifests import Manifests
from paimon_py.metadata.snapshots import Snapshots
from paimon_py.spec.data_file import ManifestEntry, Stats
from paimon_py.spec.schema import TableSchema
from paimon_py.spec.type_text import print_type
from paimon_py.storage.local_store import LocalStore

BEYOND_ARROW = {"types-orc-old-timestamps"}
"""Its statistics hold TIMESTAMP(9) of years that 64 bits of nanoseconds cannot hold."""
_SAMPLE = ("levels-", "dv32-", "dv64-", "partial-groups", "life-0")
CASES = [
    pytest.param(case, id=case.name, marks=() if case.name.startswith(_SAMPLE) else pytest.mark.full)
    for case in golden.cases(str(CORPUS))
    if case.stage <= 2 and case.data.get("files") and case.name not in BEYOND_ARROW
]


class Decoder:
    """Our entries in the form of case.json."""

    def __init__(self, table: Path) -> None:
        self.table = table
        self.schemas: dict[int, TableSchema] = {}

    def schema(self, number: int) -> TableSchema:
        if number not in self.schemas:
            path = self.table / "schema" / f"schema-{number}"
            self.schemas[number] = schema_from_json(path.read_bytes(), str(path))
        return self.schemas[number]

    def row(self, data: bytes, schema: TableSchema, names) -> dict:
        fields = [schema.field(name) for name in names]
        if int.from_bytes(data[:4], "big") != len(fields):
            return data.hex()
        columns = decode(pa.array([data], pa.binary()), [field.type for field in fields])
        table = pa.table(columns, names=list(names)) if fields else None
        kinds = [[field.name, print_type(field.type)] for field in fields]
        return dict(zip(names, golden.normalise(table, kinds)[0])) if fields else {}

    def stats(self, stats: Stats, schema: TableSchema, names) -> dict:
        counts = [] if stats.null_counts is None else list(stats.null_counts)
        return {"min": self.row(stats.min_values, schema, names), "max": self.row(stats.max_values, schema, names), "nullCounts": counts}

    def entry(self, entry: ManifestEntry) -> dict:
        file = entry.file
        schema = self.schema(file.schema_id)
        keys = schema.trimmed_primary_keys if schema.primary_keys else ()
        columns = file.value_stats_columns if file.value_stats_columns is not None else file.write_columns
        return {
            "partition": self.row(entry.partition, schema, schema.partition_keys),
            "bucket": entry.bucket,
            "totalBuckets": entry.total_buckets,
            "fileName": file.name,
            "level": file.level,
            "rowCount": file.row_count,
            "deleteRowCount": file.delete_row_count,
            "minSequenceNumber": file.min_sequence,
            "maxSequenceNumber": file.max_sequence,
            "schemaId": file.schema_id,
            "minKey": self.row(file.min_key, schema, keys),
            "maxKey": self.row(file.max_key, schema, keys),
            "keyStats": self.stats(file.key_stats, schema, keys),
            "valueStatsCols": None if file.value_stats_columns is None else list(file.value_stats_columns),
            "valueStats": self.stats(file.value_stats, schema, schema.names if columns is None else columns),
            "extraFiles": list(file.extra_files),
            "fileSource": None if file.source is None else file.source.name,
            "fileSize": file.size_bytes,
        }


def canonical(want: dict, schema: TableSchema) -> dict:
    """An entry of case.json with its values in golden's canonical form."""
    kinds = {field.name: golden.parse_type(print_type(field.type)) for field in schema.fields}

    def row(values):
        return values if isinstance(values, str) else {name: golden.canonical(value, kinds[name]) for name, value in values.items()}

    made = dict(want)
    for name in ("partition", "minKey", "maxKey"):
        made[name] = row(want[name])
    for name in ("keyStats", "valueStats"):
        made[name] = {"min": row(want[name]["min"]), "max": row(want[name]["max"]), "nullCounts": want[name]["nullCounts"]}
    return made


@pytest.mark.parametrize("case", CASES)
def test_files_and_levels_are_decoded_as_in_java(case, tmp_path):
    warehouse = Path(golden.unpack(case, tmp_path))
    database, name = case.table.split(".", 1)
    table = warehouse / f"{database}.db" / name.split("$")[0]
    store = LocalStore()
    snapshots, manifests = Snapshots(store, str(table)), Manifests(store, str(table), Env(pool=SerialPool()))
    decoder = Decoder(table)
    for number in case.data["files"]:
        if not number.isdigit() or not (table / "snapshot" / f"snapshot-{number}").exists():
            continue
        got = {one.file.name: decoder.entry(one) for one in manifests.live_entries(snapshots.get(int(number))).entries()}
        want = {one["fileName"]: one for one in golden.live_files(case, number)}
        assert got.keys() == want.keys()
        for file, one in got.items():
            expected = canonical(want[file], decoder.schema(one["schemaId"]))
            assert one == {key: expected[key] for key in one}, f"snapshot {number}"
