"""The executor that docs/executors.md shows keeps what executors promise, on threads and on processes."""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

import pytest
from house.living_pages import blocks

from paimon_py.testing.executor_suite import ExecutorSuite

PAGE = Path(__file__).parents[3] / "docs" / "executors.md"


@pytest.fixture(scope="module")
def shown():
    (code,) = (block for block in blocks(PAGE) if "class PoolExecutor" in block)
    assert len(code.partition("class PoolExecutor")[2].partition("\n\n\n")[0].splitlines()) <= 30
    names = {"__name__": "shown"}
    exec(compile(code.partition("\n\n\nwith ")[0], PAGE.name, "exec"), names)
    return names["PoolExecutor"]


@pytest.fixture(scope="module", params=[ThreadPoolExecutor, ProcessPoolExecutor])
def pool(request):
    spawned = {"mp_context": multiprocessing.get_context("spawn")} if request.param is ProcessPoolExecutor else {}
    with request.param(2, **spawned) as pool:
        yield pool


class TestShownExecutor(ExecutorSuite):
    @pytest.fixture
    def executor(self, shown, pool):
        return shown(pool, 3)

    @pytest.fixture
    def warehouse(self, tmp_path):
        return str(tmp_path)
