"""Files of tables by the names of a catalog, through fsspec."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from pathlib import Path

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from unit.catalogs.rest_stub import OPTIONS, StubServer, catalog_of

from paimon_py import Catalog, Schema, UnsupportedError, UsageError
from paimon_py.pvfs import PaimonFileSystem

COLUMNS = Schema([("k", "BIGINT"), ("v", "STRING")])


@pytest.fixture
def catalog(tmp_path):
    made = Catalog.open(str(tmp_path / "w"))
    made.create_database("d")
    made.create_table("d.t", COLUMNS).write_arrow([{"k": 1, "v": "a"}])
    return made


def test_files_of_a_table_are_found_and_read(catalog):
    files = PaimonFileSystem(catalog=catalog)
    assert files.ls("pvfs://w", detail=False) == ["w/d"]
    assert files.ls("pvfs://w/d", detail=False) == ["w/d/t"]
    assert {"w/d/t/bucket-0", "w/d/t/schema", "w/d/t/snapshot"} <= set(files.ls("w/d/t", detail=False))
    (data,) = files.glob("pvfs://w/d/t/bucket-0/*.parquet")
    assert files.info(data)["size"] == files.size(data) > 0 and files.info(data)["mtime"] > 0
    age = datetime.now(timezone.utc) - files.modified(data)
    assert timedelta(minutes=-1) < age < timedelta(minutes=10)
    with pytest.raises(IsADirectoryError):
        files.modified("w/d/t")
    with pytest.raises(FileNotFoundError):
        files.modified("w/d/t/nothing")
    with files.open(data) as source:
        assert pq.read_table(source, partitioning=None)["v"].to_pylist() == ["a"]
    assert data in files.find("pvfs://w") and files.cat_file(data, 0, 4) == b"PAR1"
    assert files.ls(data, detail=False) == [data]
    assert (files.isdir("w/d/t"), files.isfile("w/d/t"), files.exists("w/d/t/nothing"), files.exists("w/x")) == (True, False, False, False)


def test_the_protocol_is_known_to_fsspec(catalog):
    fsspec.register_implementation("pvfs", "paimon_py.pvfs.PaimonFileSystem", clobber=True)
    files = fsspec.filesystem("pvfs", catalog=catalog)
    assert isinstance(files, PaimonFileSystem)
    with fsspec.open("pvfs://w/d/t/snapshot/LATEST", catalog=catalog) as source:
        assert source.read() == b"1"


def test_wrong_paths_and_writes_are_refused(catalog):
    files = PaimonFileSystem(catalog=catalog)
    for path in ("w/d/none", "w/none", "w/d/t/none", "w/d/none/x"):
        with pytest.raises(FileNotFoundError):
            files.info(path)
        with pytest.raises(FileNotFoundError):
            files.ls(path)
    for path in ("", "pvfs://", "w/d/t/../u", "w/d/./t"):
        with pytest.raises(UsageError):
            files.ls(path)
    with pytest.raises(IsADirectoryError):
        files.open("w/d/t/snapshot")
    for verb in (
        lambda: files.open("w/d/t/x", "wb"), lambda: files.mkdir("w/d/x"), lambda: files.makedirs("w/d/x"), lambda: files.rmdir("w/d/t"),
        lambda: files.rm("w/d/t/snapshot/LATEST"), lambda: files.cp_file("w/d/t/snapshot/LATEST", "w/d/t/x"), lambda: files.pipe_file("w/d/t/x", b"x"),
    ):  # fmt: skip
        with pytest.raises(UnsupportedError, match="read only"):
            verb()
    assert catalog.table("d.t").count() == 1
    with pytest.raises(UsageError, match="options of a catalog"):
        PaimonFileSystem()


def test_object_tables_of_a_server_are_directories(tmp_path):
    server = StubServer(str(tmp_path / "w"))
    catalog = catalog_of(server)
    catalog.create_database("d")
    for name in ("d.t", "d.o", "d.hidden"):
        catalog.create_table(name, COLUMNS).write_arrow(pa.table({"k": [1], "v": ["a"]}))
    kind = {"type": "object-table"}
    server.tables["d.o"] |= {**kind, "options": kind}
    server.tables["d.hidden"]["options"] = {"query-auth.enabled": "true"}
    (Path(catalog.table("d.t").location).with_name("o") / "a.png").write_bytes(b"\x89PNG")
    files = PaimonFileSystem(catalog=catalog)
    assert files.ls("w/d", detail=False) == ["w/d/hidden", "w/d/o", "w/d/t"] and catalog.tables("d") == ["hidden", "t"]
    assert "w/d/o/a.png" in files.ls("w/d/o", detail=False) and files.cat("w/d/o/a.png") == b"\x89PNG"
    calls = len(server.calls)
    assert files.cat("w/d/o/a.png") == b"\x89PNG" and len(server.calls) == calls
    files.invalidate_cache()
    assert files.cat("w/d/o/a.png") == b"\x89PNG" and len(server.calls) == calls + 1
    with pytest.raises(UnsupportedError, match="object-table"):
        catalog.table("d.o")
    with pytest.raises(UnsupportedError, match="query-auth"):
        files.ls("w/d/hidden")


def test_options_open_a_catalog_for_each_warehouse(monkeypatch):
    seen = []

    def opened(*_, options, create):
        seen.append((options, create))
        raise UsageError("closed")

    monkeypatch.setattr(Catalog, "open", opened)
    with pytest.raises(UsageError, match="closed"):
        PaimonFileSystem(uri="http://x", token="t").ls("pvfs://lake/d")
    with pytest.raises(UsageError, match="closed"):
        PaimonFileSystem({**OPTIONS, "warehouse": "own"}).ls("pvfs://lake/d")
    assert seen[0] == ({"warehouse": "lake", "metastore": "rest", "uri": "http://x", "token": "t"}, False)
    assert seen[1][0]["warehouse"] == "own"
