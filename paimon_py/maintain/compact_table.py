"""One compaction of a table, from the arguments of a call to its result; tasks may run in other processes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from paimon_py.arguments import NameList, check_flag, check_progress
from paimon_py.codec.partition_choice import choice_of
from paimon_py.commit.result import CommitResult, join_results
from paimon_py.compaction.compact import Compactor
from paimon_py.executors.executor import Executor, require_executor
from paimon_py.expr.predicate import Predicate
from paimon_py.maintain.auto_maintenance import run_auto_maintenance
from paimon_py.maintain.cleanup.expire_partitions import leave_out_expired
from paimon_py.maintain.publish_postponed import publish_postponed
from paimon_py.metadata.idle_warning import warn_of_idle_options
from paimon_py.metadata.open_table import OpenTable
from paimon_py.progress import Progress
from paimon_py.spec.bucket_mode import BucketMode, bucket_mode
from paimon_py.spec.clustering import sort_clustering
from paimon_py.spec.supported import check_compactable


def compact_table(
    table: OpenTable,
    *,
    full: bool,
    partitions: Sequence[Mapping[str, object]] | None,
    where: Predicate | str | None,
    order_by: NameList | None,
    strategy: str | None,
    progress: Progress | None,
    executor: Executor | None = None,
) -> CommitResult:
    """See `Table.compact`; `executor`: runs the tasks; None: this process."""
    check_compactable(table.schema)
    table.root.store.require_new(table.root.path)
    warn_of_idle_options(table.root, table.schema.options)
    check_progress(progress)
    require_executor(executor)
    check_flag("full", full)
    clustering = sort_clustering(table.schema, order_by, strategy)
    chosen = leave_out_expired(table, choice_of(table.schema, "compact", partitions, where, table.root.env.clock))
    published = CommitResult()
    if bucket_mode(table.schema) is BucketMode.POSTPONED:
        published = publish_postponed(table, chosen, progress)
    compactor = Compactor(table, full=full, chosen=chosen, clustering=clustering, executor=executor)
    return run_auto_maintenance(table, join_results(published, compactor.run(progress)))
