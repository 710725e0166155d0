"""How a runner takes and gives back memory."""

import os
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest

from paimon_py import Catalog, Schema
from paimon_py.service.memory import RUNNER_BYTES, frugal_allocator, release_free_memory, restart_frugally, runner_bytes


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
        assert given == {**environment, **frugal_allocator()}
        restart_frugally(given, lambda *call: calls.append(call), system)
        assert len(calls) == 1


@pytest.mark.parametrize("platform", ["linux", "darwin"])
def test_arrow_has_the_frugal_allocator(platform):
    assert frugal_allocator(platform)["ARROW_DEFAULT_MEMORY_POOL"] in pa.supported_memory_backends()


def test_free_memory_can_be_given_back_at_any_time():
    release_free_memory()
    assert pa.array([1, 2]).to_pylist() == [1, 2]


@pytest.mark.full
def test_a_runner_stays_below_256_mb(tmp_path):
    catalog = Catalog.open(str(tmp_path / "lake"))
    catalog.create_database("d")
    columns = {"id": "BIGINT NOT NULL", "a": "BIGINT", "b": "DOUBLE", "s": "STRING", "t": "STRING"}
    numbers = np.random.default_rng(7).integers(0, 1 << 60, 75_000)
    rows = pa.table({
        "id": numbers, "a": numbers, "b": numbers / 3, "s": [f"customer {n}" for n in numbers],
        "t": [f"text of some length {n * 7919} and more" for n in range(len(numbers))],
    })  # fmt: skip
    for name, keys in (("keyed", ["id"]), ("plain", [])):
        options = {"bucket": "1" if keys else "-1", "write-only": "true"}
        table = catalog.create_table(f"d.{name}", Schema(columns), primary_key=keys, options=options)
        for number in range(18):
            table.write_arrow(rows.set_column(0, "id", pa.array(numbers + number)))
    command = [sys.executable, "-m", "paimon_py", "care", str(tmp_path / "lake"), "--once", "--orphans-every", "never"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    output = process.stdout.read().decode()
    _, status, usage = os.wait4(process.pid, 0)
    process.stdout.close()
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    assert output.count("18 files") == 2
    assert usage.ru_maxrss / 1024 < 256
