import pytest

from paimon_py.errors import StorageError, StorageUnknownError
from paimon_py.storage.memory_store import MemoryStore
from paimon_py.testing.counting_store import CountingStore
from paimon_py.testing.fault_store import MODES, FaultStore, SimulatedCrash, for_each_fault


def write(store):
    with store.open_write("/f") as sink:
        sink.write(b"1234")


def test_before_leaves_nothing_and_after_leaves_the_effect():
    memory = MemoryStore()
    with pytest.raises(StorageError):
        FaultStore(memory, 1, "before").put_new("/f", b"1")
    assert memory.list("/") == []
    with pytest.raises(StorageError):
        FaultStore(memory, 1, "after").put_new("/f", b"1")
    assert memory.get("/f") == b"1"
    with pytest.raises(StorageUnknownError):
        FaultStore(memory, 1, "lost").put("/f", b"2")
    assert memory.get("/f") == b"2"


def test_a_stream_counts_opening_writing_and_closing():
    faults = FaultStore(MemoryStore())
    write(faults)
    assert [verb for verb, _ in faults.log] == ["open_write", "write", "close"]


def test_a_short_write_stores_half():
    memory = MemoryStore()
    with pytest.raises(StorageError):
        write(FaultStore(memory, 2, "short"))
    assert memory.get("/f") == b"12"


def test_after_a_crash_no_call_works_not_even_clean_up():
    memory = MemoryStore()
    memory.put_new("/g", b"1")
    faults = FaultStore(memory, 2, "die")
    with pytest.raises(SimulatedCrash):
        try:
            write(faults)
        finally:
            faults.delete("/g")
    assert memory.get("/g") == b"1"


def test_every_call_of_an_operation_fails_once_per_mode():
    seen = []
    runs = for_each_fault(MemoryStore, write, lambda store, outcome: seen.append(outcome))
    assert {(outcome.fault.verb, outcome.fault.mode) for outcome in seen} == {
        (verb, mode) for verb in ("open_write", "write", "close") for mode in MODES
    } - {("open_write", "short")}
    assert runs == len(seen) == 3 * len(MODES) - 1
    assert all(outcome.error is not None for outcome in seen)


def test_a_failed_check_names_the_fault():
    def check(store, outcome):
        assert outcome.fault.verb != "write", "files differ"

    with pytest.raises(AssertionError, match=r"call 2 \(write f\), before: files differ"):
        for_each_fault(MemoryStore, write, check)


def test_calls_are_counted_per_verb():
    store = CountingStore(MemoryStore())
    write(store)
    store.list("/")
    assert store.calls == {"open_write": 1, "list": 1}
    store.reset()
    assert not store.calls
