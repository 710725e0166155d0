"""What a job says whose executors died: from Spark's own words, at the place where they are, and from nothing else."""

from __future__ import annotations

import pytest

pytest.importorskip("pyspark", reason="the Spark adapter needs pyspark")

from pyspark.errors import PySparkException  # noqa: E402

from paimon_py import UsageError  # noqa: E402
from paimon_py.errors import ResourceError  # noqa: E402
from paimon_py.spark.jobs import error_text, translate_errors  # noqa: E402

CALLED = "An error occurred while calling o47.collectToPython.\n: org.apache.spark.SparkException: "
ABORTED = "Job aborted due to stage failure: "
TASK = "Task 0 in stage 2.0 failed 4 times, most recent failure: Lost task 0.3 in stage 2.0 (TID 7) (192.0.2.2 executor 3): "
DIED = "ExecutorLostFailure (executor 3 exited caused by one of the running tasks) Reason: Command exited with code 137"
CRASHED = "org.apache.spark.SparkException: Python worker exited unexpectedly (crashed)\n\tat org.apache.spark.api.python"
STAGE = (
    "ResultStage 2 (collectToPython at NativeMethodAccessorImpl.java:0) has failed the maximum allowable number of times: 4. "
    "Most recent failure reason:\norg.apache.spark.shuffle.MetadataFetchFailedException: Missing an output location"
)
FAILED = "org.apache.spark.SparkRuntimeException: [CAST_INVALID_INPUT] The value '{}' of the type \"STRING\" cannot be cast"


@pytest.mark.parametrize("prefix", [CALLED, "", "(org.apache.spark.SparkException) ", "[INTERNAL_ERROR] "], ids=range(4))
@pytest.mark.parametrize("said", [
    ABORTED + TASK + DIED, ABORTED + TASK + CRASHED, ABORTED + STAGE, ABORTED + "Master removed our application: FAILED",
    "Job 3 cancelled because SparkContext was shut down",
], ids=["died", "crashed", "stage", "removed", "shut down"])  # fmt: skip
def test_dead_executors_are_told_with_what_was_done_and_what_was_not(prefix, said):
    with pytest.raises(ResourceError, match="nothing of this job was committed.*remove_orphans") as caught, translate_errors("job"):
        raise PySparkException(prefix + said + "\nDriver stacktrace:")
    assert "stacktrace" not in str(caught.value) and said.splitlines()[0][-40:] in str(caught.value)
    assert isinstance(caught.value.__cause__, PySparkException)


@pytest.mark.parametrize("said", [
    CALLED + ABORTED + TASK + FAILED.format(ABORTED + TASK + DIED), FAILED.format(ABORTED + STAGE), "Table or view not found",
    CALLED + ABORTED + TASK + FAILED.format("\n" + ABORTED + STAGE),
], ids=["value", "alone", "other", "line"])  # fmt: skip
def test_values_that_read_like_dead_executors_are_not_taken_for_them(said):
    with pytest.raises(PySparkException), translate_errors("job"):
        raise PySparkException(said)


def test_an_error_of_ours_is_told_before_the_death_of_an_executor():
    with pytest.raises(UsageError, match="no such thing"), translate_errors("job"):
        raise PySparkException(ABORTED + STAGE + error_text(UsageError("no such thing"), "job"))
