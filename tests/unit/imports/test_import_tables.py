"""`catalog.import_delta` and `catalog.import_iceberg`: snapshots with schema, partitions and deletes."""

from __future__ import annotations

import datetime
import json
import struct
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyroaring import BitMap
from unit.imports.source import state
from unit.public import new_catalog

from paimon_py import Schema, SchemaError, StorageError, UnsupportedError, UsageError

DIGITS = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
ROWS = pa.table({
    "id": [1, 2, 3, 4], "s": ["a", "b", None, "d"], "day": pa.array([datetime.date(2024, 1, at) for at in (1, 1, 2, 3)]),
    "at": pa.array([datetime.datetime(2024, 1, 1, 1)] * 4, pa.timestamp("us", "UTC")),
})  # fmt: skip


@pytest.fixture
def catalog(tmp_path):
    return new_catalog(str(tmp_path / "warehouse"))


def rows(table):
    return sorted(table.to_arrow().to_pylist(), key=lambda row: row["id"])


EXPECTED = sorted(ROWS.to_pylist(), key=lambda row: row["id"])


def z85(data):
    data += b"\0" * (-len(data) % 4)
    text = ""
    for at in range(0, len(data), 4):
        number, part = int.from_bytes(data[at : at + 4], "big"), ""
        for _ in range(5):
            part, number = DIGITS[number % 85] + part, number // 85
        text += part
    return text


def with_deletion_vector(directory, path_part, *dead):
    """A commit that gives a file of a Delta table a deletion vector, as Spark and Databricks write it."""
    log = directory / "_delta_log"
    adds = [json.loads(line)["add"] for file in sorted(log.glob("*.json")) for line in file.read_text().splitlines() if '"add"' in line]
    add = next(each for each in adds if path_part in each["path"])
    data = struct.pack("<IQI", 1_681_511_377, 1, 0) + BitMap(dead).serialize()
    vector = {"storageType": "i", "pathOrInlineDv": z85(data), "sizeInBytes": len(data), "cardinality": len(dead)}
    actions = [
        {"commitInfo": {"timestamp": 1, "operation": "DELETE", "operationParameters": {}}},
        {"remove": {"path": add["path"], "deletionTimestamp": 2, "dataChange": True}}, {"add": {**add, "deletionVector": vector}},
    ]  # fmt: skip
    (log / f"{len(list(log.glob('*.json'))):020d}.json").write_text("\n".join(map(json.dumps, actions)) + "\n")


@pytest.fixture
def delta(tmp_path):
    deltalake = pytest.importorskip("deltalake")
    place = tmp_path / "delta table"
    deltalake.write_deltalake(str(place), ROWS, partition_by=["day"], configuration={"delta.enableDeletionVectors": "true"})
    return place


def write_delta(place, table, **how):
    import deltalake

    deltalake.write_deltalake(str(place), table, mode="append", **how)


def test_imported_delta_files_stay_at_their_source(catalog, delta):
    import deltalake

    before = state(delta)
    plan = catalog.import_delta("d.t", delta, dry_run=True)
    assert (plan.files, plan.rows, plan.partitions, plan.by_reference, plan.partition_keys) == (3, 4, 3, True, ("day",))
    assert catalog.tables("d") == []
    result = catalog.import_delta("d.t", delta)
    assert (result.snapshot_id, result.copied_because) == (1, None)
    table = catalog.table("d.t")
    assert rows(table) == EXPECTED and table.schema.partition_keys == ("day",)
    assert table.schema.names == tuple(ROWS.schema.names)
    assert catalog.import_delta("d.t", deltalake.DeltaTable(str(delta))).files == 0
    assert not list(Path(table.location).rglob("*.parquet")) and state(delta) == before
    write_delta(delta, ROWS.slice(0, 1))
    assert catalog.import_delta("d.t", delta).files == 1
    assert len(rows(table)) == 5
    catalog.drop_table("d.t")
    assert before.items() <= state(delta).items()


def test_rows_deleted_in_delta_do_not_appear(catalog, delta):
    with_deletion_vector(delta, "2024-01-01", 1)
    with pytest.raises(UnsupportedError, match="deletion vectors"):
        catalog.import_delta("d.t", delta, copy=False)
    result = catalog.import_delta("d.t", delta)
    assert not result.by_reference and "deletion vectors" in result.copied_because
    assert rows(catalog.table("d.t")) == [row for row in EXPECTED if row["id"] != 2]
    assert catalog.import_delta("d.t", delta).files == 0
    whole = catalog.import_delta("d.first", delta, version=0)
    assert whole.by_reference and rows(catalog.table("d.first")) == EXPECTED
    with pytest.raises(UsageError, match="another table"):
        catalog.import_delta("d.first", delta)


ODD = ["ä", "a b", "x=y", "a/b", "%25", "a:b", "a+b", "a%b", "q?", "#"]


def test_partition_values_that_stand_encoded_in_directories_of_delta(catalog, tmp_path):
    """Their files were looked for under the decoded names."""
    deltalake = pytest.importorskip("deltalake")
    given = pa.table({"id": [*range(len(ODD))], "key": ODD})
    deltalake.write_deltalake(str(tmp_path / "100% delta"), given, partition_by=["key"])
    assert catalog.import_delta("d.t", tmp_path / "100% delta").by_reference
    assert rows(catalog.table("d.t")) == given.to_pylist()


def test_rewritten_delta_files_are_not_imported_again(catalog, delta):
    import deltalake

    catalog.import_delta("d.t", delta)
    deltalake.DeltaTable(str(delta)).delete("id = 1")
    with pytest.raises(UsageError, match="rewritten files"):
        catalog.import_delta("d.t", delta)
    assert catalog.import_delta("d.u", delta).by_reference
    assert rows(catalog.table("d.u")) == EXPECTED[1:]


def test_delta_into_keyed_and_existing_tables(catalog, delta):
    result = catalog.import_delta("d.k", delta, primary_key=["id", "day"], table_options={"bucket": "1"})
    assert "primary key" in result.copied_because and rows(catalog.table("d.k")) == EXPECTED
    catalog.create_table("d.t", Schema({"id": "BIGINT", "s": "STRING", "day": "DATE", "at": "TIMESTAMP(6) WITH LOCAL TIME ZONE"}))
    result = catalog.import_delta("d.t", delta, copy=True)
    assert result.copied_because is None and not result.by_reference and rows(catalog.table("d.t")) == EXPECTED
    assert catalog.import_delta("d.t", delta, copy=True).files == 0


def test_tables_with_other_partition_keys_get_copies_of_the_rows(catalog, delta):
    """The values of the keys were taken in the order of the source, or a ValueError of Python was raised."""
    columns = {"id": "BIGINT", "s": "STRING", "day": "DATE", "at": "TIMESTAMP(6) WITH LOCAL TIME ZONE"}
    for name, keys in (("none", []), ("other", ["s"]), ("more", ["day", "s"])):
        catalog.create_table(f"d.{name}", Schema(columns), partition_by=keys)
        with pytest.raises(UnsupportedError, match="partitioned by"):
            catalog.import_delta(f"d.{name}", delta, copy=False)
        result = catalog.import_delta(f"d.{name}", delta)
        assert "partitioned by" in result.copied_because and rows(catalog.table(f"d.{name}")) == EXPECTED


@pytest.mark.parametrize("copy", [True, False])
def test_an_empty_partition_key_of_delta_is_null(copy, catalog, tmp_path):
    deltalake = pytest.importorskip("deltalake")
    given = pa.table({"id": [1, 2, 3], "key": ["a", "", None]})
    deltalake.write_deltalake(str(tmp_path / "delta"), given, partition_by=["key"])
    catalog.import_delta("d.t", tmp_path / "delta", copy=copy)
    assert [row["key"] for row in rows(catalog.table("d.t"))] == ["a", None, None]


def test_keys_that_cannot_name_directories_are_plain_columns(catalog, tmp_path):
    deltalake = pytest.importorskip("deltalake")
    given = pa.table({"id": [1], "key": [b"a"]})
    deltalake.write_deltalake(str(tmp_path / "delta"), given, partition_by=["key"])
    assert catalog.import_delta("d.t", tmp_path / "delta").partition_keys == ()
    assert catalog.table("d.t").count() == 1


def test_files_that_were_vacuumed_are_missed_by_name(catalog, delta):
    import deltalake

    table = deltalake.DeltaTable(str(delta))
    table.delete("id = 1")
    deltalake.DeltaTable(str(delta)).vacuum(0, enforce_retention_duration=False, dry_run=False)
    for copy, error in ((None, StorageError), (True, UsageError)):
        with pytest.raises(error, match="parquet"):
            catalog.import_delta("d.t", delta, version=0, copy=copy)
        assert catalog.tables("d") == []
    assert catalog.import_delta("d.t", delta).rows == 3


def test_wrong_delta(catalog, tmp_path, delta, monkeypatch):
    with pytest.raises(UsageError, match="cannot be read"):
        catalog.import_delta("d.t", tmp_path)
    with pytest.raises(UsageError):
        catalog.import_delta("d.t", delta, copy="no")
    for dry_run in ("no", None, 1):
        with pytest.raises(UsageError, match="dry_run is True or False"):
            catalog.import_delta("d.t", delta, dry_run=dry_run)
    monkeypatch.setitem(sys.modules, "deltalake", None)
    with pytest.raises(UnsupportedError, match=r"paimon-py\[delta\]"):
        catalog.import_delta("d.t", delta)


@pytest.fixture
def iceberg(tmp_path):
    sql = pytest.importorskip("pyiceberg.catalog.sql")
    pytest.importorskip("sqlalchemy")
    names = sql.SqlCatalog("x", uri=f"sqlite:///{tmp_path}/names.db", warehouse=f"file://{tmp_path}/ice")
    names.create_namespace("n")

    def made(name, *keys):
        table = names.create_table(f"n.{name}", schema=ROWS.schema)
        with table.update_spec() as spec:
            for key in keys:
                spec.add_identity(key)
        table.append(ROWS)
        return table

    yield made
    names.close()


@pytest.mark.parametrize("keys", [(), ("day",), ("s",)])
def test_imported_iceberg_files_stay_at_their_source(catalog, iceberg, tmp_path, keys):
    source = iceberg("t", *keys)
    before = state(tmp_path / "ice")
    plan = catalog.import_iceberg("d.t", source, dry_run=True)
    assert (plan.rows, plan.by_reference, plan.partition_keys, plan.copied_because) == (4, True, keys, None)
    assert catalog.import_iceberg("d.t", source.metadata_location).snapshot_id == 1
    table = catalog.table("d.t")
    assert rows(table) == EXPECTED and table.schema.partition_keys == keys
    assert catalog.import_iceberg("d.t", source).files == 0
    assert not list(Path(table.location).rglob("*.parquet"))
    source.append(ROWS.slice(1, 1))
    assert catalog.import_iceberg("d.t", source).rows == 1
    assert len(rows(table)) == 5
    table.delete("id = 2")
    table.compact(full=True)
    table.expire_snapshots(retain_min=1, retain_max=1)
    catalog.drop_table("d.t")
    assert before.items() <= state(tmp_path / "ice").items()


def test_renamed_columns_of_iceberg_are_copied(catalog, iceberg):
    source = iceberg("t")
    with source.update_schema() as update:
        update.rename_column("s", "text")
    result = catalog.import_iceberg("d.t", source)
    assert "another id" in result.copied_because or "not in the table" in result.copied_because
    assert [row["text"] for row in rows(catalog.table("d.t"))] == ["a", "b", None, "d"]
    with source.update_schema(allow_incompatible_changes=True) as update:
        update.delete_column("text")
    with source.update_schema() as update:
        from pyiceberg.types import StringType

        update.add_column("text", StringType())
    catalog.import_iceberg("d.u", source)
    assert [row["text"] for row in rows(catalog.table("d.u"))] == [None] * 4


def _file_of(task):
    return Path(task.file.file_path.removeprefix("file://"))


def test_iceberg_files_that_lack_a_column_with_values_are_copied(catalog, iceberg):
    """Files of migrated tables lack their partition keys; NULL was read for them once the table had other keys."""
    source = iceberg("t", "s")
    for file in map(_file_of, source.scan().plan_files()):
        given = pq.read_table(file, partitioning=None)
        kept = [field for field in pq.read_schema(file) if field.name != "s"]
        pq.write_table(given.select([field.name for field in kept]).cast(pa.schema(kept)), file)
    assert catalog.import_iceberg("d.keys", source).by_reference and rows(catalog.table("d.keys")) == EXPECTED
    with source.update_spec() as spec:
        spec.remove_field("s")
    with pytest.raises(UnsupportedError, match="'s' is not in the file"):
        catalog.import_iceberg("d.t", source, copy=False)
    catalog.import_iceberg("d.t", source)
    assert rows(catalog.table("d.t")) == EXPECTED


def test_iceberg_files_that_lack_a_column_with_a_default_are_copied(catalog, iceberg):
    source = iceberg("t")
    path = Path(source.metadata_location.removeprefix("file://"))
    value = json.loads(path.read_text())
    column = {"id": 9, "name": "n", "required": False, "type": "string", "initial-default": "x", "write-default": "x"}
    newest = {**value["schemas"][-1], "schema-id": 7}
    newest["fields"] = [*newest["fields"], column]
    value |= {
        "format-version": 3, "next-row-id": 4, "schemas": [*value["schemas"], newest], "current-schema-id": 7,
        "last-column-id": 9,
    }  # fmt: skip
    changed = path.with_name("changed.metadata.json")
    changed.write_text(json.dumps(value))
    assert not catalog.import_iceberg("d.t", changed).by_reference
    assert [row["n"] for row in rows(catalog.table("d.t"))] == ["x"] * 4


def test_partition_values_that_stand_encoded_in_directories_of_iceberg(catalog, tmp_path):
    from pyiceberg.catalog.sql import SqlCatalog

    (tmp_path / "100% ice").mkdir()
    place = SqlCatalog("x", uri=f"sqlite:///{tmp_path}/ice.db", warehouse=f"file:{tmp_path / '100% ice'}")
    place.create_namespace("n")
    given = pa.table({"id": [*range(len(ODD))], "key": ODD})
    table = place.create_table("n.t", given.schema)
    with table.update_spec() as spec:
        spec.add_identity("key")
    table.append(given)
    assert catalog.import_iceberg("d.t", table).by_reference
    assert rows(catalog.table("d.t")) == given.to_pylist()
    assert catalog.import_iceberg("d.t", table).files == 0


def test_times_of_day_of_iceberg_are_copied_as_whole_milliseconds(catalog, tmp_path):
    from pyiceberg.catalog.sql import SqlCatalog

    place = SqlCatalog("x", uri=f"sqlite:///{tmp_path}/ice.db", warehouse=f"file://{tmp_path}")
    place.create_namespace("n")
    given = pa.table({"id": [0, 1], "t": pa.array([datetime.time(1, 2, 3, 4000), None], pa.time64("us"))})
    table = place.create_table("n.t", given.schema)
    table.append(given)
    done = catalog.import_iceberg("d.t", table)
    assert not done.by_reference and "a type that Paimon does not have" in done.copied_because
    assert rows(catalog.table("d.t")) == given.to_pylist()
    table.append(pa.table({"id": [2], "t": pa.array([datetime.time(1, 2, 3, 4)], pa.time64("us"))}))
    with pytest.raises(SchemaError, match="t"):
        catalog.import_iceberg("d.other", table)
    assert "other" not in catalog.tables("d")


def test_older_snapshots_of_iceberg(catalog, iceberg):
    source = iceberg("t", "day")
    first = source.current_snapshot().snapshot_id
    source.delete("id = 2")
    assert catalog.import_iceberg("d.t", source, snapshot_id=first).by_reference
    assert rows(catalog.table("d.t")) == EXPECTED
    assert catalog.import_iceberg("d.u", source).rows == 3
    with pytest.raises(UsageError, match="rewritten"):
        catalog.import_iceberg("d.t", source)
    with pytest.raises(UsageError, match="cannot be read"):
        catalog.import_iceberg("d.v", source.metadata_location + "x")


def test_without_pyiceberg_the_error_names_the_package(catalog, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyiceberg.table", None)
    with pytest.raises(UnsupportedError, match=r"paimon-py\[iceberg\]"):
        catalog.import_iceberg("d.t", "x")
