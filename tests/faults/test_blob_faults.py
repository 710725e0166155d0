"""Every store call of writing and changing BLOBs fails once: the table has the old bytes or the new ones, and no file is left."""

from __future__ import annotations

import pytest
from faults.test_table_faults import THREE, WAREHOUSE, catalog, one_way, table_on
from unit.commit.support import below

from paimon_py import CommitUnknownError, PaimonError, Schema
from paimon_py.storage.memory_store import MemoryStore
from paimon_py.testing.fault_store import for_each_fault

OPTIONS = {"bucket": "-1", "row-tracking.enabled": "true", "data-evolution.enabled": "true", "blob.target-file-size": "20 b"}
OLD = [(1, b"one" * 9), (2, None), (3, b"")]
VERBS = {
    "append": (lambda t: t.write_arrow([{"id": 4, "a": b"four" * 9}, {"id": 5, "a": b"5"}]), [*OLD, (4, b"four" * 9), (5, b"5")], 3),
    "update": (lambda t: t.update_rows([{"_ROW_ID": 0, "a": b"new" * 9}, {"_ROW_ID": 2, "a": None}]), [(1, b"new" * 9), (2, None), (3, None)], 2),
    "update of both": (lambda t: t.update("id = 3", {"id": 30, "a": b"x"}), [*OLD[:2], (30, b"x")], 2),
}


def fresh():
    store = MemoryStore()
    names = catalog(store, "setup")
    names.create_database("db")
    table = names.create_table("db.t", Schema({"id": "INT", "a": "BLOB"}), options=OPTIONS)
    table.write_arrow([{"id": key, "a": value} for key, value in OLD])
    return store


@pytest.mark.parametrize("name", VERBS)
def test_every_call_of_a_verb_on_blobs_may_fail(name):
    verb, after, more = VERBS[name]
    before = len(files(fresh()))

    def check(store, outcome):
        found = [tuple(row.values()) for row in table_on(store, "checker").to_arrow().to_pylist()]
        if outcome.error is None:
            assert found == after and len(files(store)) == before + more
        elif outcome.crashed or isinstance(outcome.error, CommitUnknownError):
            assert found in (after, OLD)
        else:
            assert isinstance(outcome.error, PaimonError) and found == OLD
            assert len(files(store)) == before or outcome.fault.verb == "delete", "files of a verb that failed were left"

    assert for_each_fault(fresh, lambda store: verb(table_on(store, "writer")), check, modes=THREE, share=one_way) > 10


PACKED_VERBS = {
    "append": (lambda t: t.write_arrow([{"id": 4, "a": b"four" * 9}, {"id": 5, "a": b"5"}]), {4: b"four" * 9, 5: b"5"}, 4),
    "update": (lambda t: t.update("id = 1", {"a": b"new" * 9}), {1: b"new" * 9}, 3),
    "update of another column": (lambda t: t.update("id = 1", {"n": "x"}), {}, 2),
    "upsert": (lambda t: t.upsert([{"id": 1, "a": b"new"}, {"id": 7, "a": b"seven"}]), {1: b"new", 7: b"seven"}, 3),
    "delete": (lambda t: t.delete("id = 1"), {1: None}, 2),
    "compact": (lambda t: t.compact(full=True), {}, 2),
}


def fresh_packed():
    store = MemoryStore()
    names = catalog(store, "setup")
    names.create_database("db")
    options = {"bucket": "1", "blob.target-file-size": "40 b"}
    table = names.create_table("db.t", Schema({"id": "INT NOT NULL", "a": "BLOB", "n": "STRING"}), primary_key=["id"], options=options)
    table.write_arrow([{"id": key, "a": value, "n": "old"} for key, value in OLD])
    table.write_arrow([{"id": 1, "a": b"1" * 5, "n": "old"}])
    return store


@pytest.mark.parametrize("name", PACKED_VERBS)
def test_every_call_of_a_verb_on_packed_blobs_may_fail(name):
    verb, changed, more = PACKED_VERBS[name]
    before = len(files(fresh_packed()))
    old = {1: b"1" * 5, 2: None, 3: b""}
    after = {key: value for key, value in {**old, **changed}.items() if name != "delete" or key != 1}

    def check(store, outcome):
        found = {row["id"]: row["a"] for row in table_on(store, "checker").to_arrow().to_pylist()}
        if outcome.error is None:
            assert found == after and len(files(store)) == before + more
        elif outcome.crashed or isinstance(outcome.error, CommitUnknownError):
            assert found in (after, old)
        else:
            assert isinstance(outcome.error, PaimonError) and found == old
            assert len(files(store)) == before or outcome.fault.verb == "delete", "files of a verb that failed were left"

    assert for_each_fault(fresh_packed, lambda store: verb(table_on(store, "writer")), check, modes=THREE, share=one_way) > 10


def files(store):
    return below(store, f"{WAREHOUSE}/db.db/t/bucket-0")
