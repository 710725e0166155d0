"""Every store call of writing with index files, and of adding them to old files, fails once in every way.

Afterwards the table reads right, and no index file lies about that no snapshot names unless the store kept us from
deleting it.
"""

from __future__ import annotations

import pyarrow as pa
import pytest
from unit.commit.support import Clock, Ids, below

from paimon_py import Catalog, CommitUnknownError, PaimonError, SetOption, Table, col
from paimon_py.compaction import index_rewrite
from paimon_py.env import Env, SerialPool
from paimon_py.metadata.root import TableRoot
from paimon_py.storage.memory_store import MemoryStore
from paimon_py.testing.fault_store import MODES, for_each_fault

WAREHOUSE = "memory://indexes"
SCHEMA = pa.schema([pa.field("k", pa.int64(), nullable=False), ("v", pa.string())])
OPTIONS = {"file-index.bitmap.columns": "v", "file-index.in-manifest-threshold": "0 b"}
FIRST = pa.table({"k": [1, 2], "v": ["a", "b"]}, schema=SCHEMA)
SECOND = pa.table({"k": [3, 4], "v": ["b", None]}, schema=SCHEMA)


def env(owner: str) -> Env:
    return Env(Clock(), Ids(owner), SerialPool())


def table_on(store, owner: str) -> Table:
    root = TableRoot(store, f"{WAREHOUSE}/db.db/t", env(owner))
    return Table(root, root.schemas.latest(), "db.t")


def build(keyed: bool, options: dict[str, str]):
    def fresh():
        store = MemoryStore()
        names = Catalog(store, WAREHOUSE, env=env("setup"))
        names.create_database("db")
        keys = {"primary_key": ["k"], "options": {"bucket": "1", **options}} if keyed else {"options": options}
        table = names.create_table("db.t", SCHEMA, **keys)
        table.write_arrow(FIRST)
        if not options:
            table.alter(*(SetOption(name, text) for name, text in OPTIONS.items()))
        return store

    return fresh


def check_index_files(store, outcome):
    """All index files that snapshots name are there; and only they, if cleaning up could work."""
    table = table_on(store, "checker")
    entries = [entry for snapshot in table.snapshots() for manifest in snapshot.manifests() for entry in manifest.entries()]
    named = {name for entry in entries for name in entry.file.extra_files}
    found = {path.rsplit("/", 1)[1] for path in below(store, WAREHOUSE) if path.endswith(".index")}
    assert named <= found
    if outcome.error is not None and not outcome.crashed and not isinstance(outcome.error, CommitUnknownError):
        assert found == named or outcome.fault.verb == "delete", sorted(found - named)
    return table


SHARES = [(3, ("before", "lost")), pytest.param((1, MODES), marks=pytest.mark.full)]


def share_of(step):
    return lambda call, mode: call % step == 0


@pytest.mark.parametrize("share", SHARES, ids=["few", "all"])
@pytest.mark.parametrize("keyed", [False, True], ids=["append", "keyed"])
def test_every_call_of_a_write_with_index_files_may_fail(keyed, share):
    def check(store, outcome):
        table = check_index_files(store, outcome)
        rows = sorted(table.scan(where=col("v") == "b").to_arrow()["k"].to_pylist())
        assert rows == [2, 3] if outcome.error is None else rows in ([2], [2, 3])

    run = lambda store: table_on(store, "writer").write_arrow(SECOND)  # noqa: E731
    step, modes = share
    assert for_each_fault(build(keyed, OPTIONS), run, check, modes=modes, share=share_of(step)) > 5


@pytest.mark.parametrize("share", SHARES, ids=["few", "all"])
@pytest.mark.parametrize("keyed", [False, True], ids=["append", "keyed"])
def test_every_call_of_a_rewrite_may_fail(keyed, share):
    def check(store, outcome):
        table = check_index_files(store, outcome)
        assert outcome.error is None or outcome.crashed or isinstance(outcome.error, PaimonError)
        assert sorted(table.scan().to_arrow()["k"].to_pylist()) == [1, 2]
        plan = table.scan(where=col("v") == "b").explain()
        assert plan.index_rows == 1 or (outcome.error is not None and plan.index_rows == 0)
        table.rewrite_file_index()
        assert table.scan(where=col("v") == "b").explain().index_rows == 1

    run = lambda store: table_on(store, "writer").rewrite_file_index()  # noqa: E731
    step, modes = share
    assert for_each_fault(build(keyed, {}), run, check, modes=modes, share=share_of(step)) > 5


def test_a_rewrite_that_others_overtake_deletes_its_index_files(monkeypatch):
    store = build(True, {})()
    table = table_on(store, "writer")

    late = table_on(store, "other")

    commit = index_rewrite.commit

    def overtaken(*given):
        late.write_arrow(SECOND)
        late.compact(full=True)
        return commit(*given)

    monkeypatch.setattr(index_rewrite, "commit", overtaken)
    result = table.rewrite_file_index()
    assert result.dropped_buckets
    named = {
        name
        for manifest in table_on(store, "checker").snapshot().manifests()
        for entry in manifest.entries()
        for name in entry.file.extra_files
    }
    found = {path.rsplit("/", 1)[1] for path in below(store, WAREHOUSE) if path.endswith(".index")}
    assert {path for path in found if path not in named} <= {
        name for entry in (e for s in late.snapshots() for m in s.manifests() for e in m.entries()) for name in entry.file.extra_files
    }
    assert sorted(table_on(store, "checker").scan(where=col("v") == "b").to_arrow()["k"].to_pylist()) == [2, 3]
