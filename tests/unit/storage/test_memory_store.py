import pickle

import pytest

from paimon_py.errors import StorageError, UsageError
from paimon_py.storage.memory_store import MemoryStore
from paimon_py.testing.store_suite import StoreSuite


class TestMemoryStore(StoreSuite):
    @pytest.fixture
    def store(self):
        return MemoryStore()

    @pytest.fixture(params=["/root", "memory://bucket/root"])
    def root(self, request):
        return request.param


def test_a_pickled_memory_store_can_be_loaded_only_while_it_exists():
    store = MemoryStore()
    pickled = pickle.dumps(store)
    assert pickle.loads(pickled) is store
    del store
    with pytest.raises(UsageError, match="process"):
        pickle.loads(pickled)


def test_files_and_directories_are_not_confused():
    store = MemoryStore()
    store.put_new("/d/f", b"1")
    with pytest.raises(StorageError):
        store.put_new("/d/f/below", b"1")
    with pytest.raises(StorageError):
        store.delete("/d")


def test_a_copy_has_the_same_files_and_is_independent():
    store = MemoryStore()
    store.put_new("/d/f", b"1")
    copy = store.copy()
    copy.put("/d/f", b"2")
    copy.put_new("/d/g", b"3")
    assert (store.get("/d/f"), store.stat("/d/g"), copy.get("/d/f")) == (b"1", None, b"2")
