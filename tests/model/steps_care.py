"""Steps that care for files: compaction at once, in tasks and beside others, other numbers of buckets, indexes."""

from __future__ import annotations

from model.steps_writing import HELD_MAX
from model.table_life import Held

from paimon_py import CommitConflictError, SetOption, UsageError
from paimon_py.compaction.task import CompactionTask


def restriction(life, rng):
    """Arguments for some partitions, and which these are."""
    value = life.knows(rng)
    if value is None:
        return {}, lambda partition: True
    if rng.random() < 0.5:
        return {"partitions": [{"p": value}]}, lambda partition: partition == value
    return {"where": f"p = {value}"}, lambda partition: partition == value


def compact(life, rng):
    given, matches = restriction(life, rng)
    table = life.current(rng) if life.mode.postponed else life.any(rng)
    with life.refused(CommitConflictError, must=False):
        table.compact(full=rng.random() < 0.4, **given)
    if life.was_refused:
        assert life.outdated(table), "refused for nothing"
        return
    life.content.publish(matches)
    life.commits += 1


def sort(life, rng):
    """Rows of append tables in the order of some columns."""
    table = life.current(rng)
    columns = rng.sample([name for name in life.known(table) if name != "p"], rng.choice([1, 2, 3]))
    strategy = rng.choice([None, "order", "zorder", "hilbert", "auto"])
    if strategy == "hilbert" and len(columns) < 2:
        strategy = "zorder"
    given, _ = restriction(life, rng)
    if not life.mode.sortable:
        with life.refused(UsageError):
            table.compact(order_by=columns)
        return
    table.compact(full=True, order_by=columns, strategy=strategy, **given)


def compact_in_tasks(life, rng):
    """Tasks are run in any order, by any process; some are committed now, some later, some never."""
    table = life.current(rng)
    since = life.commits
    given, _ = restriction(life, rng)
    tasks = [bytes(task) for task in table.compaction_tasks(full=rng.random() < 0.4, **given)]
    rng.shuffle(tasks)
    results = []
    for task in tasks[: rng.choice([1, 2, len(tasks)])]:
        runner = life.opened() if rng.random() < 0.5 else table
        results.append(runner.run_compaction(CompactionTask.from_bytes(task) if rng.random() < 0.5 else task))
    if not results:
        return
    if rng.random() < 0.5 or len(life.held) + len(results) > HELD_MAX + 2:
        try:
            table.commit(results)
        except CommitConflictError as error:
            raise AssertionError("nobody was faster") from error
        life.commits += 1
        return
    life.held += [Held(changes, table.schema.id, [], since) for changes in results]


def rescale(life, rng):
    table = life.current(rng)
    buckets = rng.choice([1, 2, 3, 4])
    if not (life.mode.fixed or life.mode.postponed):
        with life.refused(UsageError):
            table.rescale(buckets)
        return
    value = life.knows(rng)
    call = lambda: table.rescale(buckets, **({} if value is None else {"partitions": [{"p": value}]}))  # noqa: E731
    with life.refused(UsageError, must=False):
        call()
    if life.was_refused:
        untold = table.options.get("changelog-producer") in ("lookup", "full-compaction")
        assert life.hidden or untold, "refused for nothing"
    if table.schema.id != life.latest_schema:
        life.columns_of[table.schema.id] = life.columns
        life.latest_schema = table.schema.id
    life.wrote([], None if life.was_refused else lambda partition: value is None or partition == value)


def index_files(life, rng):
    """Old files get the indexes that the table asks for, also ones that it did not ask for before."""
    table = life.current(rng)
    given, _ = restriction(life, rng)
    if rng.random() < 0.3:
        kind = rng.choice(["bloom-filter", "bitmap", "bsi", "range-bitmap"])
        table.alter(SetOption(f"file-index.{kind}.columns", rng.choice(["n", "k", "n,k"])))
        life.columns_of[table.schema.id] = life.columns
        life.latest_schema = table.schema.id
    table.rewrite_file_index(**given)
    life.commits += 1


def compact_manifests(life, rng):
    life.pick(rng).compact_manifests()


def wait(life, rng):
    """Time passes."""
    life.clock.sleep(rng.choice([1, 3600]))
