"""Data files that Java Paimon wrote: read in every later schema, and written again with the same manifest entries."""

import os
from pathlib import Path

import golden
import locate
import msgspec
import pyarrow as pa
import pytest
from unit.codec.manifest.manifest_entries import fold
from unit.files.build import FixedClock, FixedIds

from paimon_py.codec.binary_row import decode
from paimon_py.codec.json import schema_from_json
from paimon_py.codec.manifest.entries import read_manifests
from paimon_py.codec.manifest.lists import read_manifest_list
from paimon_py.codec.snapshot_json import snapshot_from_json
from paimon_py.errors import UnsupportedError
from paimon_py.files.layout import file_layout
from paimon_py.files.naming import DataFileNames, NameRules
from paimon_py.files.physical import readable_fields
from paimon_py.files.reader import FileReader
from paimon_py.files.writer import RollingWriter
from paimon_py.spec.data_file import FileSource
from paimon_py.spec.options import Options
from paimon_py.storage.local_store import LocalStore
from paimon_py.storage.memory_store import MemoryStore

SAMPLE = ("evolution-", "stats-", "types-numbers-", "pk-composite-", "pk-key-", "thin-")
CASES = [
    pytest.param(case, id=case.name, marks=() if case.name.startswith(SAMPLE) else pytest.mark.full)
    for case in golden.cases(root=str(locate.CORPUS), stage=1)
]
ENTRY = ("row_count", "min_key", "max_key", "min_sequence", "max_sequence", "delete_row_count", "schema_id", "level")


class JavaTable:
    """The metadata of an unpacked table and where its files lie."""

    def __init__(self, case, directory):
        database, name = case.table.split(".")
        self.root = Path(golden.unpack(case, directory)) / f"{database}.db" / name
        self.places = {name: f"{folder}/{name}" for folder, _, names in os.walk(self.root) for name in names}
        self.schemas = {
            int(path.name.removeprefix("schema-")): schema_from_json(path.read_bytes(), path.name)
            for path in (self.root / "schema").glob("schema-*")
        }
        self.snapshots = {
            int(path.name.removeprefix("snapshot-")): snapshot_from_json(path.read_bytes(), path.name)
            for path in (self.root / "snapshot").glob("snapshot-*")
        }

    def files(self, snapshot):
        lists = (snapshot.base_manifest_list, snapshot.delta_manifest_list)
        manifests = [file for name in lists for file in read_manifest_list(self._manifest(name))]
        entries = read_manifests([(file.name, self._manifest(file.name)) for file in manifests]).entries()
        return [entry.file for entry in fold(entries)]

    def rows(self, file, schema):
        store = LocalStore(fsync=False)
        fields = readable_fields(schema)
        reader = FileReader(store, self.places[file.name], file, self.schemas[file.schema_id], fields)
        for _, rows in reader.positions(batch_rows=7):
            rows.validate(full=True)
            yield rows

    def _manifest(self, name):
        return (self.root / "manifest" / name).read_bytes()


@pytest.mark.parametrize("case", CASES)
def test_every_file_of_every_snapshot_is_read_in_every_schema_that_followed(case, tmp_path):
    table = JavaTable(case, tmp_path)
    try:
        found = {
            (number, schema.id): [batch for file in table.files(snapshot) for batch in table.rows(file, schema)]
            for number, snapshot in table.snapshots.items()
            for schema in table.schemas.values()
            if schema.id >= snapshot.schema_id
        }
    except UnsupportedError as error:
        pytest.skip(str(error))
    for read in case.reads:
        schema = table.schemas[max(table.schemas)]
        plain = set(read) <= {"scan", "schema", "rows"} and read["scan"] == {} and not schema.primary_keys
        batches = found.get((max(table.snapshots, default=0), schema.id))
        if plain and batches and "deletion-vectors.enabled" not in schema.options:
            assert golden.compare(case, read, pa.Table.from_batches(batches)) is None


@pytest.mark.parametrize("case", CASES)
def test_a_file_written_again_gets_the_manifest_entry_that_java_wrote(case, tmp_path):
    table = JavaTable(case, tmp_path)
    last = table.snapshots.get(max(table.snapshots, default=0))
    for file in table.files(last)[:10] if last else ():
        schema = table.schemas[file.schema_id]
        source = FileSource.APPEND if file.source is None else file.source
        layout = file_layout(schema, level=file.level, source=source)
        if not file.name.endswith(layout.format_name):
            continue
        layout = msgspec.structs.replace(layout, target_size_bytes=1 << 40)
        names = DataFileNames(NameRules.of(Options(schema.options)), FixedIds())
        rolling = RollingWriter(MemoryStore(), "/t", names, layout, FixedClock(), first_sequence=file.min_sequence)
        try:
            for rows in table.rows(file, schema):
                rolling.write(rows)
        except UnsupportedError as error:
            pytest.skip(str(error))
        (ours,) = rolling.close()
        assert [getattr(ours, name) for name in ENTRY] == [getattr(file, name) for name in ENTRY]
        assert wrong_bounds(schema.fields, file.value_stats, file.value_stats_columns, ours.value_stats) == []
        if schema.primary_keys and "java-090" not in case.tags and not file.name.endswith(".avro"):
            assert wrong_bounds(schema.key_fields, file.key_stats, None, ours.key_stats) == []


def wrong_bounds(fields, java, names, ours):
    """Columns whose statistics differ, but for floats (NaN, zeros), padded CHAR, and what Java leaves out.

    Of binaries we keep the null count alone.
    """
    by_name = {field.name: field for field in fields}
    kept = fields if names is None else [by_name[name] for name in names]
    given = slots(java, kept)
    mine = slots(ours, fields)
    given = {name: ((None, None, b[2]) if "BINARY" in kind else b, kind) for name, (b, kind) in given.items()}
    return [
        (name, bounds, mine[name])
        for name, (bounds, kind) in given.items()
        if "FLOAT" not in kind and "DOUBLE" not in kind and "CHAR:" not in kind and mine[name][0] != bounds
    ]


def slots(stats, fields):
    if not fields:
        return {}
    columns = decode([stats.min_values, stats.max_values], [field.type for field in fields])
    counts = stats.null_counts or [None] * len(fields)
    return {
        field.name: ((*column.to_pylist(), count), f"{getattr(field.type, 'root', '')!r}")
        for field, column, count in zip(fields, columns, counts, strict=True)
    }
