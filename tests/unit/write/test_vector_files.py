"""Vectors in files of their own (`vector.file.format`): writing, setting, compacting; what Java 2.0 would read wrong is refused."""

from __future__ import annotations

import os

import pyarrow as pa
import pytest

from paimon_py import AddColumn, Catalog, RenameColumn, Schema, SchemaError, UnsupportedError
from paimon_py.files import writer

OPTIONS = {
    "row-tracking.enabled": "true", "data-evolution.enabled": "true", "deletion-vectors.enabled": "true",
    "compaction.min.file-num": "2", "write-only": "true",
}  # fmt: skip
COLUMNS = {"id": "INT", "e": "VECTOR<FLOAT, 2>", "v": "STRING", "w": "VECTOR<INT, 1>"}


@pytest.fixture
def catalog(tmp_path):
    found = Catalog.open(str(tmp_path))
    found.create_database("d")
    return found


def made(catalog, columns=COLUMNS, **options):
    return catalog.create_table("d.t", Schema(columns), options={**OPTIONS, "vector.file.format": "parquet", **options})


def row(number, **more):
    return {"id": number, "e": [number, 0.5], "v": f"v{number}", "w": [number], **more}


def files(table):
    found = table.system("files").scan(columns=["file_path", "record_count", "first_row_id", "write_cols", "schema_id"])
    return [(name.rpartition("/")[2].partition(".")[2], *rest) for name, *rest in map(dict.values, found.to_arrow().to_pylist())]


def floats(values):
    return lambda rows: pa.array([values] * rows.num_rows, pa.list_(pa.float32(), len(values)))


@pytest.mark.parametrize("kind", ["parquet", "avro"])
def test_vector_files_are_stored_beside_their_rows_and_roll_separately(catalog, kind):
    table = made(catalog, **{"vector.file.format": kind, "vector.target-file-size": "1 b", "file.format": "avro"})
    data = pa.Table.from_pylist([row(number) for number in range(2500)], table.to_arrow().schema)
    table.write_arrow(data)
    assert files(table) == [
        ("avro", 2500, 0, ["id", "v"], 0), (f"vector.{kind}", 1000, 0, ["e", "w"], 0),
        (f"vector.{kind}", 1000, 1000, ["e", "w"], 0), (f"vector.{kind}", 500, 2000, ["e", "w"], 0),
    ]  # fmt: skip
    assert table.to_arrow().equals(data)
    plan = table.scan(columns=["id"]).explain(analyze=True)
    assert plan.analysis.files_opened == 1
    assert table.scan(columns=["w"], where="id = 2400").to_arrow()["w"].to_pylist() == [[2400]]


def test_a_file_with_new_vectors_has_all_vectors_of_the_rows(catalog):
    table = made(catalog)
    table.write_arrow([row(number) for number in range(4)])
    table.update("id = 1", {"e": floats([9, 9])})
    table.update_rows(pa.table({"_ROW_ID": [2], "v": ["x"], "w": pa.array([[7]], pa.list_(pa.int32(), 1))}))
    assert [each[3] for each in files(table)] == [["id", "v"], ["e", "w"], ["e", "w"], ["v"], ["e", "w"]]
    wanted = [row(0), row(1, e=[9, 9]), row(2, v="x", w=[7]), row(3)]
    assert table.to_arrow().to_pylist() == wanted
    table.delete("id = 0")
    assert table.compact(full=True).file_count == 1
    assert table.to_arrow().to_pylist() == wanted[1:]
    assert [each[3] for each in files(table)] == [["e", "w"], ["e", "w"], ["e", "w"], ["id", "v"]]
    done = table.update("true", {"e": floats([1, 1]), "w": lambda rows: pa.array([[5]] * rows.num_rows, pa.list_(pa.int32(), 1))})
    assert done.updated == 3 and [each["e"] for each in table.to_arrow().to_pylist()] == [[1, 1]] * 3
    assert table.stream(from_=6).poll().to_arrow()["_row_kind"].to_pylist() == ["-U"] * 3 + ["+U"] * 3


def test_new_vectors_keep_the_schema_of_the_files_that_they_replace(catalog):
    table = made(catalog)
    table.write_arrow([row(1)])
    table.alter(AddColumn("x", "INT"))
    table.refresh()
    table.update("id = 1", {"e": floats([9, 9]), "x": 3})
    assert [each[4] for each in files(table)] == [0, 0, 1, 0]
    table.write_arrow([row(2, x=4)])
    assert table.compact(full=True).file_count == 1  # files of another schema beside them: not joined with those rows
    assert sorted(each[1] for each in files(table) if each[0] == "parquet") == [1, 1]
    assert table.to_arrow().to_pylist() == [row(1, e=[9, 9], x=3), row(2, x=4)]


def test_vectors_after_a_change_of_vector_columns(catalog):
    table = made(catalog)
    table.write_arrow([row(1)])
    table.alter(RenameColumn("e", "f"), AddColumn("z", "VECTOR<INT, 1>"))
    table.refresh()
    with pytest.raises(UnsupportedError, match="Java 2.0 would return the old values"):
        table.update("id = 1", {"f": floats([9, 9])})
    ints = lambda rows: pa.array([[5]] * rows.num_rows, pa.list_(pa.int32(), 1))  # noqa: E731
    table.update("id = 1", {"z": ints})
    with pytest.raises(UnsupportedError, match="Java 2.0 would return the old values"):
        table.update("id = 1", {"w": ints, "z": ints})
    table.update("id = 1", {"z": lambda rows: pa.array([None] * rows.num_rows, pa.list_(pa.int32(), 1))})
    assert table.to_arrow().to_pylist() == [{"id": 1, "f": [1, 0.5], "v": "v1", "w": [1], "z": None}]


def test_vectors_from_before_the_option_stay_where_they_are(catalog):
    table = made(catalog, **{"vector.file.format": "parquet"})
    path = f"{table.location}/schema/schema-0"
    with open(path) as source:
        text = source.read()
    with open(path, "w") as sink:
        sink.write(text.replace('"vector.file.format" : "parquet"', '"x" : "y"').replace('"vector.file.format":"parquet"', '"x":"y"'))
    plain = Catalog.open(catalog.warehouse).table("d.t")
    plain.write_arrow([row(1), row(2)])
    assert [each[0] for each in files(plain)] == ["parquet"]
    with open(path, "w") as sink:
        sink.write(text)
    table = Catalog.open(catalog.warehouse).table("d.t")
    table.update("id = 1", {"v": "x"})
    table.write_arrow([row(3)])
    assert table.compact(full=True).file_count == 1
    assert table.to_arrow().to_pylist() == [row(1, v="x"), row(2), row(3)]
    table.update("id = 2", {"e": floats([9, 9]), "v": "y"})
    table.compact(full=True)
    assert table.to_arrow().to_pylist() == [row(1, v="x"), row(2, e=[9, 9], v="y"), row(3)]


def test_a_write_that_fails_leaves_no_file(catalog, monkeypatch):
    from paimon_py.files import writer

    table = made(catalog)
    real, count = writer.RollingWriter._begin, []

    def begin(self):
        count.append(self)
        if len(count) == 2:
            raise OSError("full")
        return real(self)

    monkeypatch.setattr(writer.RollingWriter, "_begin", begin)
    with pytest.raises(OSError):
        table.write_arrow([row(1)])
    count.clear()
    assert not os.path.isdir(f"{table.location}/bucket-0") or not os.listdir(f"{table.location}/bucket-0")


def test_types_that_readers_cannot_read_are_refused(catalog):
    with pytest.raises(UnsupportedError, match="no other column"):
        made(catalog, {"e": "VECTOR<FLOAT, 2>"})
    for kind in ("row", "json"):
        with pytest.raises(UnsupportedError, match=kind):
            catalog.create_table("d.b", Schema(COLUMNS), options={**OPTIONS, "vector.file.format": kind})


def test_files_of_pypaimon_have_no_statistics_and_no_list_of_columns_for_them(catalog, monkeypatch):
    """Its files of vectors have rows of no bounds, but do not list no columns."""
    made_file = writer.DataFile
    monkeypatch.setattr(writer, "DataFile", lambda **given: made_file(**{**given, "value_stats_columns": None}))
    table = made(catalog)
    table.write_arrow([row(number) for number in range(4)])
    monkeypatch.undo()
    assert table.scan(where="w IS NULL").count() == 0 and table.scan(where="e IS NOT NULL AND id > 1").count() == 2
    told = table.system("files").scan(columns=["file_path", "min_value_stats"]).to_arrow().to_pylist()
    (vectors,) = (file["min_value_stats"] for file in told if ".vector." in file["file_path"])
    assert vectors == "{e=null, id=null, v=null, w=null}"


def test_the_rows_beside_vectors_may_have_a_format_without_them(catalog):
    """As in Java: ORC has no vectors, and those of the table are in files of another format."""
    table = made(catalog, **{"file.format": "orc"})
    table.write_arrow([row(number) for number in range(4)])
    table.update("id = 1", {"e": floats([9.0, 9.0]), "v": "new"})
    table.write_arrow([row(4)])
    table.compact(full=True)
    assert {name.partition(".")[2] if name.startswith("vector") else name for name, *_ in files(table)} == {"orc", "parquet"}
    found = table.to_arrow().to_pylist()
    assert [found[1]["e"], found[1]["v"], found[4]] == [[9.0, 9.0], "new", row(4)]
    for options in ({"file.format": "orc", "vector.file.format": ""}, {"vector.file.format": "orc"}):
        with pytest.raises((SchemaError, UnsupportedError), match="ORC files cannot hold VECTOR|vector.file.format=orc"):
            catalog.create_table("d.other", Schema(COLUMNS), options={**OPTIONS, "vector.file.format": "parquet", **options})
