"""Every store call of writing and setting vectors in separate files fails once: the old or the new vectors, and no file is left."""

from __future__ import annotations

import pyarrow as pa
import pytest
from faults.test_blob_faults import files
from faults.test_table_faults import THREE, catalog, one_way, table_on

from paimon_py import CommitUnknownError, PaimonError, Schema
from paimon_py.storage.memory_store import MemoryStore
from paimon_py.testing.fault_store import for_each_fault

OPTIONS = {"row-tracking.enabled": "true", "data-evolution.enabled": "true", "vector.file.format": "parquet"}
OLD = [(1, [1, 1]), (2, None)]
NEW = pa.array([[9, 9]], pa.list_(pa.float32(), 2))
VERBS = {
    "append": (lambda t: t.write_arrow([{"id": 4, "e": [4, 4]}]), [*OLD, (4, [4, 4])], 2),
    "update": (lambda t: t.update("id = 1", {"id": 7, "e": lambda _: NEW}), [(7, [9, 9]), OLD[1]], 2),
}


def fresh():
    store = MemoryStore()
    names = catalog(store, "setup")
    names.create_database("db")
    table = names.create_table("db.t", Schema({"id": "INT", "e": "VECTOR<FLOAT, 2>"}), options=OPTIONS)
    table.write_arrow([{"id": key, "e": value} for key, value in OLD])
    return store


@pytest.mark.full
@pytest.mark.parametrize("name", VERBS)
def test_every_call_of_a_verb_on_vectors_may_fail(name):
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
