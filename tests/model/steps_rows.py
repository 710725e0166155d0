"""Steps that change single rows: delete, update, upsert, merge, also beside others."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
from model.merge_model import UPSERT, Source, drawn, merged
from model.row_model import condition

from paimon_py import CommitConflictError, UsageError, col


def delete(life, rng):
    table = life.any(rng)
    asked = condition(rng, list(life.known(table)))
    call = lambda: table.delete(asked.asked(rng))  # noqa: E731
    if not life.mode.deletable:
        with life.refused(UsageError):
            call()
        return
    hit = [row for row in life.content.all() if asked.holds(row)]
    done = answered(life, table, call, hit)
    if done is None:
        return
    assert (done.deleted, done.updated, done.inserted) == (len(hit), 0, 0)
    assert (done.snapshot_id is None) == (not hit)
    life.content.remove(asked.holds)
    life.wrote([("-D", row) for row in hit])


def answered(life, table, call, hit, inserted=()):
    """The result of an operation that changes rows; None if their partitions are closed to writers."""
    if life.outdated(table):
        with life.refused(CommitConflictError, UsageError, must=False):
            done = call()
        return None if life.was_refused else done
    touched = {row.get("p") for row in [*hit, *inserted]}
    if life.closed(table.schema, touched):
        with life.refused(UsageError, CommitConflictError, must=life.mode.keyed or bool(inserted)):
            done = call()
        return None if life.was_refused else done
    return call()


def setting(life, rng, columns):
    """Values for columns, and what they make of a row."""
    names = [name for name in columns if name not in ("p", "k")]
    values, made = {}, {}
    for name in rng.sample(names, rng.choice([1, 1, 2])):
        kind = rng.choice(["literal", "literal", "null", "function", "column"])
        if kind == "null":
            values[name], made[name] = None, lambda row: None
        elif kind == "function" and name != "v":
            values[name] = lambda rows, name=name: pc.add(rows[name], pa.scalar(1, rows.schema.field(name).type))
            made[name] = lambda row, name=name: None if row.get(name) is None else row[name] + 1
        elif kind == "column":
            values[name], made[name] = col(name), lambda row, name=name: row.get(name)
        else:
            value = life.value(rng, name)
            values[name], made[name] = value, lambda row, value=value: value
    return values, lambda row: {**row, **{name: function(row) for name, function in made.items()}}


def kept_by_partial(life, hit, made):
    """Whether a partial update would keep what a NULL replaces."""
    if life.mode.engine != "partial-update":
        return False
    return any(made(row)[name] is None and row.get(name) is not None for row in hit for name in row)


def update(life, rng):
    table = life.any(rng)
    change(life, rng, table, *setting(life, rng, life.known(table)))


def change(life, rng, table, values, made):
    asked = condition(rng, list(life.known(table)))
    call = lambda: table.update(asked.asked(rng), values)  # noqa: E731
    if not life.mode.updatable:
        with life.refused(UsageError):
            call()
        return
    hit = [row for row in life.content.all() if asked.holds(row)]
    if kept_by_partial(life, hit, made):
        with life.refused(UsageError, CommitConflictError):
            call()
        return
    done = answered(life, table, call, hit)
    if done is None:
        return
    assert (done.deleted, done.updated, done.inserted) == (0, len(hit), 0)
    life.content.change(asked.holds, made)
    life.wrote([("+U", row) for row in hit])


def upsert(life, rng):
    """By the primary key, or by columns that are given."""
    table = life.any(rng)
    if life.mode.keyed and rng.random() < 0.5:
        pairs = [("+I", row) for _, row in life.some(rng, table)]
        data = life.arrow(table, pairs)
        if not life.mode.replaceable:
            with life.refused(UsageError):
                table.upsert(data)
            return
        done = life.try_write(lambda: table.upsert(data), table, pairs)
        if done is not None:
            life.took(pairs)
        return
    if life.mode.moves:
        return
    on = list(life.key) or (["p", "k"] if life.mode.parted else ["k"])
    rows = [life.row(rng, life.known(table)) for _ in range(rng.choice([1, 4, 10]))]
    if rng.random() < 0.8:
        rows = list({tuple(row[name] for name in on): row for row in rows}.values())
    source = Source(rows, on, life.known(table))
    run_merge(life, table, source, UPSERT, lambda data: table.upsert(data, on=on), unique=True)


def merge(life, rng):
    """A merge with random clauses."""
    table = life.any(rng)
    columns = life.known(table)
    whole = list(life.key) or (["p", "k"] if life.mode.parted else ["k"])
    on = rng.choice([whole, whole, whole, ["k"], ["v"]])
    names = {name: columns[name] for name in columns if name in on or name not in ("p", "k")}
    rows = [life.row(rng, names) for _ in range(rng.choice([1, 5, 15]))]
    if rng.random() < 0.8:
        rows = list({tuple(row[name] for name in on): row for row in rows}.values())
    source = Source(rows, on, names)
    clauses = drawn(rng, inserts=on == whole and not life.mode.moves and rng.random() < 0.7, deletes=life.mode.deletable)
    unique = life.mode.keyed and set(on) == set(life.key)
    run_merge(life, table, source, clauses, lambda data: table.merge(data, on, **clauses.asked()), unique=unique)


def run_merge(life, table, source, clauses, call, *, unique):
    data = source.arrow()
    allowed = lambda old, new: not kept_by_partial(life, [old], lambda _: new)  # noqa: E731
    done = merged(life.content.all(), source, clauses, unique=unique, allowed=allowed)
    if done is None or not life.mode.updatable or clauses.hides_some:
        with life.refused(UsageError, CommitConflictError):
            call(data)
        return
    result = answered(life, table, lambda: call(data), done.hit, done.inserted)
    if result is None:
        return
    assert (result.deleted, result.updated, result.inserted) == (done.deleted, done.updated, len(done.inserted))
    rows = [*done.kept, *done.inserted]
    life.content.rows = {life.content.at(row): row for row in rows} if life.key else rows
    life.wrote([("+U", row) for row in [*done.hit, *done.inserted]])
