"""Entries of files that are missing, and tables that are emptied for good."""

from __future__ import annotations

import os
from datetime import timedelta

import pytest
from unit.maintain.test_remove_orphans import PATH, World, rows

from paimon_py import Catalog, CorruptionError, Schema, UsageError
from paimon_py.env import Env, SerialPool
from paimon_py.metadata.consumers import Consumer
from paimon_py.metadata.root import TableRoot
from paimon_py.storage.local_store import LocalStore
from paimon_py.table import Table
from paimon_py.testing.fault_store import for_each_fault


def data_files(world):
    return sorted(path for path in world.files() if "/bucket-" in path)


@pytest.mark.parametrize("options", [{}, {"deletion-vectors.enabled": "true"}])
def test_files_that_are_missing_are_taken_out(options):
    world = World(**options)
    table = world.table
    table.write_arrow(rows(2, 4, 6))
    table.write_arrow(rows(1, 3))
    table.delete("k = 4")
    lost = sorted(path for path in data_files(world) if "p=0" in path)
    assert table.remove_unexisting_files().paths == ()
    for path in lost:
        world.store.delete(path)
    with pytest.raises(CorruptionError):
        table.scan().to_arrow()
    calls = []
    found = table.remove_unexisting_files(progress=lambda *call: calls.append(call))
    assert set(found.paths) <= set(lost) and found.paths and found.dry_run and found.snapshot_id is None
    assert calls[-1][0] == calls[-1][1] and calls[-1][2] == "files"
    with pytest.raises(CorruptionError):
        table.scan().to_arrow()
    done = table.remove_unexisting_files(dry_run=False)
    assert (done.paths, done.rows, done.snapshot_id) == (found.paths, found.rows, table.snapshot().id)
    assert sorted(table.scan().to_arrow()["k"].to_pylist()) == [1, 3]
    assert table.remove_unexisting_files(dry_run=False).snapshot_id is None
    table.write_arrow(rows(8))
    table.compact(full=True)
    assert sorted(table.scan().to_arrow()["k"].to_pylist()) == [1, 3, 8]


def test_an_empty_table_misses_nothing():
    world = World()
    assert world.table.remove_unexisting_files(dry_run=False).paths == ()
    with pytest.raises(UsageError, match="progress"):
        world.table.remove_unexisting_files(progress="x")


def test_every_call_of_the_removal_fails_once():
    world = World()
    world.table.write_arrow(rows(2, 4))
    world.table.write_arrow(rows(1))
    world.store.delete(next(path for path in data_files(world) if "p=0" in path))

    def opened(store):
        root = TableRoot(store, PATH, Env(world.clock, None, SerialPool()))
        return Table(root, root.schemas.latest(), "d.t")

    def check(store, _):
        opened(store).remove_unexisting_files(dry_run=False)
        assert opened(store).scan().to_arrow()["k"].to_pylist() == [1]

    assert for_each_fault(world.store.copy, lambda store: opened(store).remove_unexisting_files(dry_run=False), check) > 20


@pytest.mark.parametrize("options", [{}, {"changelog-producer": "input", "changelog.num-retained.min": "100"}])
def test_a_purged_table_is_empty(options):
    world = World(**options)
    table = world.table
    for step in range(4):
        table.write_arrow(rows(*range(step, step + 3)))
    table.create_tag("t")
    table.create_branch("b", from_="t").write_arrow(rows(70))
    table._root.consumers.put(Consumer("c", 2))
    table.expire_snapshots(retain_min=1, retain_max=2, older_than=timedelta(milliseconds=-1))
    world.plant("p=0/bucket-0/orphan", "readme")
    world.clock.start += 1000
    with pytest.raises(UsageError, match="branch"):
        table.branch("b").purge_files()
    table.purge_files()
    assert (table.branches(), table.tags(), table.consumers(), table.scan().to_arrow().num_rows) == ([], [], [], 0)
    assert len(table.snapshots()) == 1
    left = {path.removeprefix(f"{PATH}/").partition("/")[0] for path in world.files(PATH)}
    assert left == {"schema", "snapshot", "manifest", "readme"}
    table.write_arrow(rows(1))
    assert table.scan().to_arrow().num_rows == 1


def external(tmp_path, name, where, **options):
    catalog = Catalog(LocalStore(fsync=False), str(tmp_path / "w"), env=Env(None, None, SerialPool()))
    catalog.create_database("d", exist_ok=True)
    options = {"bucket": "1", "data-file.external-paths": f"file://{where}",
               "data-file.external-paths.strategy": "round-robin", **options}  # fmt: skip
    schema = Schema([("p", "INT NOT NULL"), ("k", "BIGINT NOT NULL"), ("v", "STRING")])
    return catalog.create_table(f"d.{name}", schema, primary_key=["p", "k"], partition_by=["p"], options=options)


@pytest.mark.parametrize("strategy", ["round-robin", "entropy-inject"])
def test_orphans_on_external_paths(tmp_path, strategy):
    where = tmp_path / "ext"
    table = external(tmp_path, "t", where, **{"data-file.external-paths.strategy": strategy})
    table.write_arrow(rows(1, 2, 3))
    table.write_arrow(rows(4, 5), overwrite={})
    table.expire_snapshots(retain_min=1, retain_max=1, older_than=timedelta(milliseconds=-1))
    kept = sorted(str(path) for path in where.rglob("*") if path.is_file())
    assert len(kept) == 2
    planted = [where / "p=1/bucket-0/orphan", where / "p=7/bucket-0/orphan", os.path.dirname(kept[0]) + "/other"]
    for path in planted:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as file:
            file.write("x")
    (where / "readme").write_text("x")
    for path in where.rglob("*"):
        os.utime(path, (10**9, 10**9))
    assert table.remove_orphans(dry_run=False).files == len(planted)
    assert sorted(str(path) for path in where.rglob("*") if path.is_file()) == sorted([*kept, str(where / "readme")])
    assert table.scan().to_arrow().num_rows == 2


def test_external_paths_of_several_tables_are_left_alone(tmp_path):
    where = tmp_path / "ext"
    table = external(tmp_path, "t", where)
    other = external(tmp_path, "u", where / "p=1")
    inside = external(tmp_path, "x", tmp_path / "w" / "d.db" / "t")
    for one in (table, other):
        one.write_arrow(rows(1, 2, 3))
    for path in (*where.rglob("*"), *(tmp_path / "w").rglob("*")):
        os.utime(path, (10**9, 10**9))
    for one, shared in ((table, where), (other, where / "p=1"), (inside, tmp_path / "w" / "d.db" / "t")):
        found = one.remove_orphans(dry_run=False)
        assert found.files == 0 and found.shared_roots == (f"file:{shared}",)
    assert table.scan().to_arrow().num_rows == other.scan().to_arrow().num_rows == 3


def test_empty_directories_go(tmp_path):
    table = external(tmp_path, "t", tmp_path / "ext", **{"data-file.external-paths.strategy": "none"})
    table.write_arrow(rows(1, 2))
    home = tmp_path / "w" / "d.db" / "t"
    (home / "p=7" / "bucket-0").mkdir(parents=True)
    (home / "p=7" / "bucket-0" / "orphan").write_text("x")
    for name in ("p=8/bucket-0", "p=9", "p=10/_", "x", "p=1/bucket-3"):
        (home / name).mkdir(parents=True)
    (home / "p=11").mkdir()
    (home / "p=11" / "_SUCCESS").write_text("x")
    for path in home.rglob("*"):
        os.utime(path, (10**9, 10**9))
    (home / "p=12" / "bucket-0").mkdir(parents=True)
    assert table.remove_orphans().removed_directories == 0
    done = table.remove_orphans(dry_run=False)
    assert (done.files, done.removed_directories) == (1, 6)
    left = {str(path.relative_to(home)) for path in home.rglob("*") if path.is_dir()}
    data = {name for name in left if "p=" in name}
    assert data == {"p=1", "p=1/bucket-0", "p=0", "p=0/bucket-0", "p=10", "p=10/_", "p=11", "p=12", "p=12/bucket-0"}
    assert {"x", "manifest", "snapshot", "schema"} <= left
    assert table.scan().to_arrow().num_rows == 2
