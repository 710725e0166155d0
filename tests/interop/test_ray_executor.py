"""The executor for Ray that docs/executors.md shows keeps what executors promise."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ray = pytest.importorskip("ray")

from paimon_py.testing.executor_suite import ExecutorSuite  # noqa: E402

PAGE = Path(__file__).parents[2] / "docs" / "executors.md"
pytestmark = [pytest.mark.full, pytest.mark.filterwarnings("ignore")]


@pytest.fixture(scope="module")
def shown():
    (code,) = (block for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL) if "class RayExecutor:" in block)
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, configure_logging=False)
    names = {"__name__": "__main__"}
    exec(compile(code.partition("\n\n\ntable.")[0], PAGE.name, "exec"), names)
    yield names["RayExecutor"]
    ray.shutdown()


class TestRayExecutor(ExecutorSuite):
    @pytest.fixture
    def executor(self, shown):
        return shown(at_once=3)

    @pytest.fixture
    def warehouse(self, tmp_path):
        return str(tmp_path)
