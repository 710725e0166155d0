"""Back-pressure: writers that leave compaction to a runner wait if it falls behind."""

from __future__ import annotations

from datetime import timedelta

from paimon_py.doctor.thresholds import RunLimits
from paimon_py.errors import ResourceError
from paimon_py.metrics.measures import measure_table
from paimon_py.service.settings import check_duration
from paimon_py.spec.options import Options
from paimon_py.table.table import Table


def wait_for_compaction(
    table: Table, *, timeout: timedelta = timedelta(hours=1), every: timedelta = timedelta(seconds=5)
) -> timedelta:
    """Wait until no bucket of a table has more sorted runs than `num-sorted-run.stop-trigger`.

    Call it in a writer of a `write-only` table before each load, so that readers never have to merge many more runs
    than that. Writers that compact, and tables without primary key, do not need to wait.

    Args:
        every: time between two checks of the table.

    Returns: the time it waited.
    Cost: each check reads the new manifests.
    Raises:
        ResourceError: the table still had too many sorted runs after `timeout`.
        UsageError: a time is not a timedelta above 0.
    """
    check_duration("timeout", timeout)
    check_duration("every", every)
    clock, limit = table._root.env.clock, RunLimits.of(Options(table._newest.options)).stop
    start = clock.elapsed()
    while (runs := measure_table(table).sorted_runs_max) > limit:
        waited = timedelta(seconds=clock.elapsed() - start)
        if waited >= timeout:
            raise ResourceError(
                f"{table.name} still has {runs} sorted runs in a bucket after {waited.total_seconds():.0f} s, more than"
                f" the {limit} of num-sorted-run.stop-trigger: run paimon-py care or table.compact(), or write less"
            )
        clock.sleep(min(every, timeout - waited).total_seconds())
    return timedelta(seconds=clock.elapsed() - start)
