"""Steps during which another step is taken: an operation takes effect as if it came after what overtook it."""

from __future__ import annotations

import random

import pyarrow.compute as pc
from model import steps_care, steps_rows, steps_writing
from model.merge_model import Clause, Clauses, Source, merged
from model.row_model import condition

from paimon_py import CommitConflictError, UsageError

OTHERS = (
    steps_writing.write, steps_writing.write, steps_writing.overwrite, steps_writing.truncate, steps_writing.commit_held,
    steps_rows.delete, steps_rows.delete, steps_rows.update, steps_rows.upsert, steps_rows.merge, steps_rows.merge,
    steps_care.compact, steps_care.compact, steps_care.compact_in_tasks, steps_care.rescale, steps_care.compact_manifests,
)  # fmt: skip


class Other:
    """A step that is taken once, when it is asked for."""

    def __init__(self, life, rng):
        self.life, self.verb, self.seed = life, rng.choice(OTHERS), rng.randrange(1 << 32)
        self.is_taken = False

    def take(self):
        if not self.is_taken:
            self.is_taken = True
            self.life.clock.sleep(1)
            self.verb(self.life, random.Random(self.seed))
            self.life.observe()

    def more(self, rows):
        """One more in column x, after the other step."""
        self.take()
        return pc.add(rows["x"], 1.0)


def increased(row):
    return {**row, "x": None if row.get("x") is None else row["x"] + 1}


def result_of(life, table, call, touched):
    """What an operation gives; None if it was refused, because others had given a partition other buckets."""
    schema = table.schema
    closed = lambda: life.closed(schema, {row.get("p") for row in touched()})  # noqa: E731
    was_closed = closed()
    try:
        return call()
    except (CommitConflictError, UsageError):
        assert was_closed or closed(), "refused for nothing"
        return None


def update_beside(life, rng):
    """Others do something while an update is evaluated."""
    if not life.mode.updatable:
        return
    table, other = life.current(rng), Other(life, rng)
    asked = condition(rng, list(life.known(table)))
    hit = lambda: [row for row in life.content.all() if asked.holds(row)]  # noqa: E731
    done = result_of(life, table, lambda: table.update(asked.asked(rng), {"x": other.more}), hit)
    if done is None:
        return
    rows = hit()
    assert done.updated == len(rows), f"updated {done.updated} in {done.rounds} rounds, not {len(rows)}"
    life.content.change(asked.holds, increased)
    life.wrote([("+U", row) for row in rows])


def merge_beside(life, rng):
    """Others do something while a merge is evaluated."""
    if not life.mode.updatable:
        return
    table, other = life.current(rng), Other(life, rng)
    columns = life.known(table)
    on = list(life.key) or (["p", "k"] if life.mode.parted else ["k"])
    names = {name: columns[name] for name in columns if name in on or name not in ("p", "k")}
    rows = [life.row(rng, names) for _ in range(rng.choice([1, 5, 15]))]
    source = Source(list({tuple(row[name] for name in on): row for row in rows}.values()), on, names)
    more = lambda batch: other.more({"x": batch["target.x"]})  # noqa: E731
    inserts = [] if life.mode.moves or rng.random() < 0.5 else [Clause()]
    clauses = Clauses([Clause(None, {"x": (more, lambda one, two: increased(one)["x"])})], [], inserts)
    outcome = lambda: merged(life.content.all(), source, clauses, unique=True, allowed=lambda old, new: True)  # noqa: E731

    def touched():
        made = outcome()
        return [*made.hit, *made.inserted]

    done = result_of(life, table, lambda: table.merge(source.arrow(), on, **clauses.asked()), touched)
    if done is None:
        return
    made = outcome()
    assert (done.updated, done.inserted) == (made.updated, len(made.inserted)), f"in {done.rounds} rounds"
    rows = [*made.kept, *made.inserted]
    life.content.rows = {life.content.at(row): row for row in rows} if life.key else rows
    life.wrote([("+U", row) for row in touched()])


def compact_beside(life, rng):
    """Others do something while a compaction runs, before it is committed."""
    table, other = life.current(rng), Other(life, rng)

    def meanwhile(*_):
        if not other.is_taken:
            life.content.publish()
        other.take()

    table.compact(full=rng.random() < 0.6, progress=meanwhile)
    if not other.is_taken or not life.waits():  # a publication that was overtaken is done again, with what came
        life.content.publish()
    life.commits += 1
