"""`Table.export`: plain Parquet files that others read, and that come back by `import_files`."""

from __future__ import annotations

import datetime

import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from unit.public import new_catalog

from paimon_py import AlreadyExistsError, PaimonError, Schema, UsageError
from paimon_py.storage.local_store import LocalStore

COLUMNS = Schema({"id": "BIGINT NOT NULL", "day": "DATE NOT NULL", "kind": "STRING NOT NULL", "price": "DECIMAL(10, 2)", "l": "ARRAY<INT>"})
DAYS = [datetime.date(2024, 1, day) for day in (1, 2)]


@pytest.fixture
def catalog(tmp_path):
    return new_catalog(str(tmp_path / "w"))


@pytest.fixture
def table(catalog):
    keys = ["id", "day", "kind"]
    made = catalog.create_table("d.t", COLUMNS, primary_key=keys, partition_by=keys[1:], options={"bucket": "2"})
    rows = [{"id": at, "day": DAYS[at % 2], "kind": "a/b" if at % 3 else "c", "l": [at]} for at in range(20)]
    made.write_arrow(rows)
    made.upsert([{**rows[3], "l": None}])
    made.delete("id = 5")
    return made


def files(directory):
    return sorted(path.relative_to(directory).as_posix() for path in directory.rglob("*") if path.is_file())


def test_a_snapshot_as_a_directory(catalog, table, tmp_path):
    result = table.export(tmp_path / "out")
    assert (result.snapshot_id, result.rows, result.files) == (3, 19, 4)
    assert [path.rpartition("/")[0] for path in files(tmp_path / "out") if path != "_SUCCESS"] == [
        "day=2024-01-01/kind=a%2Fb", "day=2024-01-01/kind=c", "day=2024-01-02/kind=a%2Fb", "day=2024-01-02/kind=c",
    ]  # fmt: skip
    schema = pa.schema([("day", pa.date32()), ("kind", pa.string())])
    read = ds.dataset(tmp_path / "out", partitioning=ds.partitioning(schema, flavor="hive")).to_table().select(COLUMNS.names)
    assert read.sort_by("id").to_pylist() == table.to_arrow().sort_by("id").to_pylist()
    catalog.import_files("d.back", tmp_path / "out", partition_by={"day": "DATE", "kind": "STRING"})
    back = catalog.table("d.back").to_arrow().select(COLUMNS.names)
    assert back.sort_by("id").to_pylist() == read.sort_by("id").to_pylist()


def test_earlier_states_columns_and_conditions(table, tmp_path):
    assert table.export(tmp_path / "first", snapshot_id=1, columns=["kind", "day", "id"], where="id > 9").rows == 10
    read = ds.dataset(tmp_path / "first", partitioning="hive").to_table()
    assert sorted(read["id"].to_pylist()) == list(range(10, 20)) and "l" not in read.schema.names
    table.create_tag("first", snapshot_id=1)
    result = table.export(tmp_path / "tag", tag="first")
    assert (result.rows, result.snapshot_id) == (20, 1)


def test_large_tables_roll_and_empty_ones_have_a_schema(catalog, tmp_path, monkeypatch):
    from paimon_py.scan import parcel
    from paimon_py.write import exported_files

    monkeypatch.setattr(parcel, "is_small", lambda _file: False)  # or the rows of all files are one batch
    monkeypatch.setattr(exported_files, "FILE_BYTES", 1)
    flat = catalog.create_table("d.flat", Schema({"id": "BIGINT", "t": "TIMESTAMP(9)"}))
    assert flat.export(tmp_path / "empty").files == 1
    assert ds.dataset(tmp_path / "empty").to_table().schema.names == ["id", "t"]
    for part in range(3):
        flat.write_arrow([{"id": part}])
    assert flat.export(tmp_path / "out").files == 3
    assert ds.dataset(tmp_path / "out").count_rows() == 3


def test_existing_files_are_not_changed(table, tmp_path):
    table.export(tmp_path / "out")
    before = {path: (tmp_path / "out" / path).read_bytes() for path in files(tmp_path / "out")}
    with pytest.raises(AlreadyExistsError, match="not empty"):
        table.export(tmp_path / "out", snapshot_id=1)
    assert {path: (tmp_path / "out" / path).read_bytes() for path in files(tmp_path / "out")} == before
    for wrong in ({"target": 7}, {"columns": ["id"]}, {"where": "nope = 1"}, {"snapshot_id": 99}):
        with pytest.raises(PaimonError):
            table.export(**{"target": tmp_path / "other", **wrong})
    with pytest.raises(UsageError):
        table.export(tmp_path / "other", columns=["id", "day"])
    assert files(tmp_path) and not (tmp_path / "other").exists()


def test_a_failure_leaves_nothing(table, tmp_path, monkeypatch):
    opened, open_write = [], LocalStore.open_write

    def failing(self, path, **how):
        opened.append(path)
        if len(opened) == 3:
            raise OSError("disk full")
        return open_write(self, path, **how)

    monkeypatch.setattr(LocalStore, "open_write", failing)
    with pytest.raises(OSError, match="disk full"):
        table.export(tmp_path / "out")
    monkeypatch.undo()
    assert files(tmp_path / "out") == []
    assert table.export(tmp_path / "out").rows == 19
