"""A table that a later release of Java made: refused by name, and no hindrance to the other tables of its catalog."""

from __future__ import annotations

import contextlib
import json
from datetime import timedelta
from pathlib import Path

import pytest

from paimon_py import Catalog, PaimonWarning, Schema, UnsupportedError


def later_type(schema):
    schema["fields"].append({"id": 9, "name": "n", "type": "TENSOR(5)"})


def later_version(schema):
    schema["version"] = 4


def later_manifests(schema):
    schema["options"]["manifest.format"] = "parquet"


@pytest.fixture(params=[later_type, later_version, later_manifests])
def catalog(request, tmp_path):
    """A good table and, beside it, one of a later release; both have a file that nothing names."""
    catalog = Catalog.open(tmp_path)
    catalog.create_database("db")
    for name in ("good", "later"):
        table = catalog.create_table(f"db.{name}", Schema({"id": "INT", "p": "INT"}), partition_by=["p"])
        table.write_arrow([{"id": 1, "p": 1}])
        (Path(table.location) / "p=1" / "bucket-0" / "data-left-0.parquet").write_bytes(b"left")
    path = Path(catalog.table("db.later").location, "schema", "schema-0")
    schema = json.loads(path.read_text())
    request.param(schema)
    path.write_text(json.dumps(schema))
    if request.param is later_manifests:
        for manifest in (path.parents[1] / "manifest").iterdir():
            manifest.write_bytes(b"PAR1" + manifest.read_bytes()[4:])
    return Catalog.open(tmp_path)


def test_the_table_is_refused_by_name(catalog):
    with pytest.raises(UnsupportedError):
        catalog.table("db.later").to_arrow()


def test_the_system_tables_of_the_catalog_tell_of_all_others(catalog):
    assert catalog.tables("db") == ["good", "later"]
    for name in ("tables", "all_table_options", "partitions"):
        with contextlib.nullcontext() if is_known(catalog, name) else pytest.warns(PaimonWarning, match=r"db\.later is omitted"):
            found = catalog.table(f"sys.{name}").scan().to_arrow()
        assert "good" in found["table_name"].to_pylist()


def is_known(catalog, name):
    """Whether this system table needs nothing of the table that is not known here."""
    try:
        catalog.table("db.later")
    except UnsupportedError:
        return False
    return name != "partitions"


def test_orphans_of_all_others_go(catalog):
    with pytest.warns(PaimonWarning, match=r"orphans of db\.later were skipped"):
        found = catalog.remove_orphans(older_than=timedelta(milliseconds=1), dry_run=False)
    assert found["db.good"].files == 1 and "db.later" not in found


def test_the_table_can_be_dropped(catalog):
    catalog.drop_table("db.later")
    assert catalog.tables("db") == ["good"]


def test_so_can_its_database(catalog):
    catalog.drop_database("db", cascade=True)
    assert catalog.databases() == []
