import pickle

import pytest

from paimon_py.env import SystemIds
from paimon_py.errors import StorageError
from paimon_py.storage.memory_store import MemoryStore
from paimon_py.storage.retry import RetryStore
from paimon_py.testing.fault_store import FaultStore
from paimon_py.testing.store_suite import StoreSuite


class StillClock:
    def __init__(self):
        self.slept = []

    def sleep(self, seconds):
        self.slept.append(seconds)


class FullJitter(SystemIds):
    def jitter(self):
        return 1.0


class TestRetryStore(StoreSuite):
    @pytest.fixture
    def store(self):
        return RetryStore(MemoryStore())

    @pytest.fixture
    def root(self):
        return "/root"

    def test_the_store_survives_pickling(self, root):
        memory = MemoryStore()
        memory.put_new(f"{root}/f", b"1")
        assert pickle.loads(pickle.dumps(RetryStore(memory))).get(f"{root}/f") == b"1"


def test_transient_errors_are_retried_with_growing_bounded_waits():
    clock = StillClock()
    memory = MemoryStore()
    memory.put_new("/f", b"1")
    faulty = FaultStore(memory, fail_at=1, repeat=4)
    store = RetryStore(
        faulty, attempts=5, first_wait_seconds=0.5, longest_wait_seconds=1.5, clock=clock, ids=FullJitter()
    )
    assert store.get("/f") == b"1"
    assert clock.slept == [0.5, 1.0, 1.5, 1.5]


def test_the_last_error_is_raised_after_all_attempts():
    clock = StillClock()
    faulty = FaultStore(MemoryStore(), fail_at=1, repeat=100)
    with pytest.raises(StorageError):
        RetryStore(faulty, attempts=3, clock=clock).list("/")
    assert faulty.count == 3


def test_permanent_errors_are_raised_immediately():
    store = RetryStore(MemoryStore(), clock=StillClock())
    with pytest.raises(StorageError, match="does not exist"):
        store.get("/absent")


def test_exclusive_creation_is_never_retried():
    for mode in ("before", "after", "lost"):
        faulty = FaultStore(MemoryStore(), fail_at=1, mode=mode)
        with pytest.raises(StorageError):
            RetryStore(faulty, clock=StillClock()).put_new("/f", b"1")
        assert faulty.count == 1
