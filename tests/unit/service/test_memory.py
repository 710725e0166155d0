"""How a runner takes and gives back memory."""

import pyarrow as pa
import pytest

from paimon_py.service.memory import RUNNER_BYTES, frugal_backend, release_free_memory, restart_frugally, runner_bytes


def test_the_runner_takes_what_its_container_has_or_a_little():
    assert runner_bytes({}.get) == RUNNER_BYTES
    assert runner_bytes({"/proc/self/cgroup": "0::/\n", "/sys/fs/cgroup/memory.max": "4294967296"}.get) == 4 << 30


@pytest.mark.parametrize(
    ("environment", "system", "begins"),
    [({"A": "1"}, "posix", True), ({"ARROW_DEFAULT_MEMORY_POOL": "mimalloc"}, "posix", False), ({}, "nt", False)],
)
def test_the_process_begins_again_once_with_a_frugal_allocator(environment, system, begins):
    calls = []
    restart_frugally(environment, lambda *call: calls.append(call), system)
    assert len(calls) == begins
    if begins:
        given = dict(calls[0][2])
        assert given == {**environment, "ARROW_DEFAULT_MEMORY_POOL": frugal_backend()}
        restart_frugally(given, lambda *call: calls.append(call), system)
        assert len(calls) == 1


def test_free_memory_can_be_given_back_at_any_time():
    release_free_memory()
    assert pa.array([1, 2]).to_pylist() == [1, 2]
