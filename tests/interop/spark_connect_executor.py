"""The promises of all executors on Spark Connect; test_spark_versions.py runs this file on a version that has it."""

from __future__ import annotations

import pytest
from spark_sessions import MARKS, local_session

from paimon_py.executors import SparkExecutor
from paimon_py.testing.executor_suite import ExecutorSuite

pytestmark = MARKS


@pytest.fixture(scope="module")
def spark():
    yield from local_session(zone="UTC", connects=True)


class TestSparkConnectExecutor(ExecutorSuite):
    @pytest.fixture
    def executor(self, spark):
        return SparkExecutor(spark)

    @pytest.fixture
    def warehouse(self, tmp_path):
        return str(tmp_path)
