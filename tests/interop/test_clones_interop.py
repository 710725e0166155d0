"""Java reads and writes clones, and processes that clone at once or die leave a whole clone or none."""

from __future__ import annotations

import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from values import canonical_rows, difference, ours

from paimon_py import AddColumn, AlreadyExistsError, Catalog, RenameColumn, Schema
from paimon_py.spec.type_text import print_type

COLUMNS = Schema({"id": "BIGINT NOT NULL", "m": "INT NOT NULL", "v": "STRING"})
KEYED = {"primary_key": ["m", "id"], "partition_by": ["m"]}


def same(session, catalog, name, **extra):
    """Whether Java reads what we read."""
    table = catalog.table(name)
    columns = [[field.name, print_type(field.type)] for field in table.schema.fields]
    step = {"op": "read", "table": name, **extra}
    theirs = canonical_rows(columns, session.run(catalog.warehouse, [step], check=True)[0]["result"])
    return difference(columns, ours(columns, table.scan().to_arrow()), theirs)


@pytest.fixture
def catalog(tmp_path):
    made = Catalog.open(str(tmp_path / "warehouse"))
    made.create_database("db")
    return made


@pytest.mark.java
@pytest.mark.parametrize("options", [
    {"bucket": "2", "changelog-producer": "input"},
    {"bucket": "1", "deletion-vectors.enabled": "true"},
    {"bucket": "-1", "dynamic-bucket.target-row-num": "2"},
], ids=["changelog", "vectors", "dynamic"])  # fmt: skip
def test_java_reads_a_clone_and_goes_on_with_it(java, catalog, options):
    table = catalog.create_table("db.t", COLUMNS, **KEYED, options=options)
    table.write_arrow([{"id": number, "m": number % 2, "v": "a"} for number in range(5)])
    table.alter(AddColumn("w", "INT"), RenameColumn("v", "name"))
    table.upsert([{"id": 1, "m": 1, "name": "b", "w": 3}])
    table.create_tag("two")
    table.compact(full=True)
    catalog.clone_table("db.t", "db.c", history=True, tags=True)
    catalog.clone_table("db.t", "db.d", tag="two")
    catalog.drop_table("db.t")
    session = java("2.0.0")
    for name in ("db.c", "db.d"):
        assert same(session, catalog, name) is None
        row = {"id": 9, "m": 1, "name": "of Java", "w": 4}
        session.run(catalog.warehouse, [{"op": "write", "table": name, "rows": [row], "id": 1}], check=True)
        assert same(session, catalog, name) is None
        clone = catalog.table(name)
        assert clone.count() == 6
        clone.compact(full=True)
        assert same(session, catalog, name) is None


CLONE = """
import sys
from paimon_py import Catalog
Catalog.open(sys.argv[1]).clone_table("db.t", "db.c", history=True)
"""


def process(catalog):
    command = [sys.executable, "-W", "ignore", "-c", CLONE, str(catalog.warehouse)]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True)


@pytest.mark.full
def test_a_process_that_is_killed_at_any_time_leaves_a_whole_clone_or_none(catalog):
    table = catalog.create_table("db.t", COLUMNS, **KEYED, options={"bucket": "4"})
    for number in range(8):
        table.write_arrow([{"id": at, "m": at % 5, "v": f"{number}"} for at in range(40)])
    table.alter(AddColumn("w", "INT"))
    wanted = table.to_arrow().sort_by("id")
    clones = 0
    for number in range(24):
        one = process(catalog)
        try:
            one.wait(0.6 + 0.06 * number)
        except subprocess.TimeoutExpired:
            one.send_signal(signal.SIGKILL)
        one.communicate()
        if "c" in catalog.tables("db"):
            clones += 1
            assert catalog.table("db.c").to_arrow().sort_by("id").equals(wanted)
            assert catalog.table("db.c").scan(snapshot_id=1).count() == 40
        try:
            catalog.clone_table("db.t", "db.c", history=True)
        except AlreadyExistsError:
            assert "c" in catalog.tables("db")
        found = catalog.table("db.c")
        assert found.to_arrow().sort_by("id").equals(wanted) and found.doctor() == table.doctor()
        catalog.drop_table("db.c")


@pytest.mark.full
def test_processes_that_clone_at_once_make_one_whole_clone(catalog):
    table = catalog.create_table("db.t", COLUMNS, **KEYED, options={"bucket": "4"})
    for number in range(6):
        table.write_arrow([{"id": at, "m": at % 5, "v": f"{number}"} for at in range(40)])
    wanted = table.to_arrow().sort_by("id")
    for _ in range(4):
        with ThreadPoolExecutor(3) as pool:
            ended = list(pool.map(lambda one: (one.communicate()[1], one.returncode), [process(catalog) for _ in range(3)]))
        for said, code in ended:
            assert code == 0 or "AlreadyExistsError" in said or "CommitConflictError" in said, said
        try:
            catalog.clone_table("db.t", "db.c", history=True)
        except AlreadyExistsError:
            assert "c" in catalog.tables("db")
        assert catalog.table("db.c").to_arrow().sort_by("id").equals(wanted)
        catalog.drop_table("db.c")
