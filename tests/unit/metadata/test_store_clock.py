"""What the clock of a store says, seen from machines whose clocks are ahead, behind, or the same."""

from __future__ import annotations

import pytest
from unit.commit.support import TABLE, Clock, new_store, put_schema, root_on, schema

from paimon_py.errors import StorageError
from paimon_py.metadata.store_clock import store_lag
from paimon_py.storage.memory_store import MemoryStore


@pytest.mark.parametrize(("ahead", "lag"), [(0, 0), (172_800_000, 172_800_000), (-172_800_000, 0), (1, 1)])
def test_the_lag_is_how_much_older_files_look_than_they_are(ahead, lag):
    store = new_store(schema(), Clock())
    assert store_lag(root_on(store, clock=Clock(Clock().millis() + ahead))) == lag
    assert not store._directories.get(f"{TABLE}/manifest"), "nothing stays"


def test_time_that_goes_by_while_the_store_is_asked_counts_as_lag():
    """Nothing is taken for older than it is."""
    clock = Clock()

    class Slow(MemoryStore):
        def delete(self, path):
            clock.seconds += 3
            super().delete(path)

    store = Slow(clock=clock)
    put_schema(store, schema())
    assert store_lag(root_on(store, clock=clock)) == 3000


def test_a_table_that_cannot_be_written_is_named_with_the_reason():
    class ReadOnly(MemoryStore):
        def put(self, path, data, *, within=None):
            raise StorageError(f"put of {path} failed: Read-only file system", path=path, operation="put")

    store = ReadOnly(clock=Clock())
    with pytest.raises(StorageError, match="t cannot be written, and deleting files by their age .* Read-only file system") as caught:
        store_lag(root_on(store, clock=Clock()))
    assert caught.value.path == TABLE
