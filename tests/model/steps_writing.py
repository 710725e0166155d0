"""Steps that write rows: at once, held back, by writers that stay open, again, over what is there."""

from __future__ import annotations

import contextlib
from datetime import datetime, timedelta

import pyarrow as pa
from model.table_life import Held, Open, partition_of

from paimon_py import (
    AddColumn,
    CommitConflictError,
    NotFoundError,
    SchemaError,
    UnsupportedError,
    UpdateColumnType,
    UsageError,
)

HELD_MAX = 4
WRITERS_MAX = 2
COLUMNS_MAX = 9


def write(life, rng):
    table = life.pick(rng)
    pairs = life.some(rng, table)
    if life.try_write(lambda: table.write_arrow(life.arrow(table, pairs)), table, pairs) is not None:
        life.took(pairs)


def overwrite(life, rng):
    """One partition, all, or those that occur."""
    table = life.pick(rng)
    pairs = [("+I", row) for _, row in life.some(rng, table, rng.choice([0, 1, 5, 12]))]
    kind = rng.choice(["one", "all", "dynamic"]) if life.mode.parted and not life.mode.moves else "all"
    if life.mode.moves:
        with life.refused(UnsupportedError):
            table.write_arrow(life.arrow(table, pairs), overwrite={"p": 1})
    if kind == "one":
        value = rng.choice(life.parts)
        pairs = [(each, {**row, "p": value}) for each, row in pairs]
        given, emptied = {"p": value}, lambda partition: partition == value
    elif kind == "dynamic":
        given, parts = "dynamic", life.partitions(pairs)
        emptied = lambda partition: partition in parts  # noqa: E731
    else:
        given, emptied = {}, lambda partition: True
    call = lambda: table.write_arrow(life.arrow(table, pairs), overwrite=given)  # noqa: E731
    if pairs and life.retyped(table.schema.id):
        with life.refused(CommitConflictError, SchemaError):
            call()
        return
    call()
    replaced(life, pairs, emptied)


def replaced(life, pairs, emptied):
    life.content.empty(emptied)
    life.content.add(pairs)
    life.wrote(pairs, emptied)


def truncate(life, rng):
    table = life.pick(rng)
    if life.mode.parted and rng.random() < 0.7:
        held = {partition.partition["p"] for partition in table.partitions()}
        gone = rng.sample(life.parts, rng.choice([1, 2]))
        if not held.issuperset(gone):
            with life.refused(NotFoundError):
                table.drop_partitions([{"p": value} for value in gone])
            return
        table.drop_partitions([{"p": value} for value in gone])
        replaced(life, [], lambda partition: partition in gone)
    else:
        table.truncate()
        replaced(life, [], lambda partition: True)


def expire_partitions(life, rng):
    """Those of the first month of 2000 go, or of the first two, one or more at a time."""
    table = life.pick(rng)
    if not life.mode.parted:
        with life.refused(UsageError):
            table.expire_partitions(older_than=timedelta(days=1))
        return
    last = rng.choice([1, 2])
    given = {"older_than": datetime(2000, last, 20), "timestamp_pattern": "2000-0$p-10", "batch_size": rng.choice([1, 2])}
    planned = table.expire_partitions(**given, dry_run=True)
    assert table.expire_partitions(**given).partitions == planned.partitions
    gone = {partition["p"] for partition in planned.partitions}
    over = set(range(1, last + 1))
    assert gone <= over and not over & {one.partition["p"] for one in table.partitions()}
    if gone:
        replaced(life, [], lambda partition: partition in gone)


# -- in two phases ---


def hold(life, rng):
    """Rows are written, and wait."""
    if len(life.held) >= HELD_MAX:
        commit_held(life, rng)
        return
    table = life.pick(rng)
    held = made(life, rng, table)
    if held is not None:
        life.held.append(held)


def made(life, rng, table):
    """Rows in files; None if the way is closed."""
    pairs = life.some(rng, table)
    since = life.commits

    def run():
        with table.writer() as writer:
            for start in range(0, len(pairs), 7):
                writer.write_arrow(life.arrow(table, pairs[start : start + 7]))
            return writer.changes()

    if life.closed(table.schema, life.partitions(pairs)):
        with life.refused(UsageError):
            run()
        return None
    with life.cut(table) if life.mode.moves else contextlib.nullcontext():
        return Held(run(), table.schema.id, pairs, since)
    return None


def commit_held(life, rng):
    """What waited is committed in any order, one by one or several at once, from this process or another."""
    if not life.held:
        hold(life, rng)
        return
    taken = rng.sample(life.held, rng.choice([1, min(2, len(life.held)), len(life.held)]))
    if rng.random() < 0.5 and not life.mode.moves:
        commit(life, rng, taken)
    else:
        for held in taken:
            commit(life, rng, [held])


def commit(life, rng, taken):
    """Whether it was not refused."""
    table = life.current(rng)
    given = [held.changes for held in taken]
    if rng.random() < 0.5:
        given = [bytes(changes) for changes in given]
    life.held = [held for held in life.held if held not in taken]
    user = {"user": "job", "identifier": next(life.identifiers)} if rng.random() < 0.3 else {}
    must, may = prospects(life, taken)
    try:
        done = table.commit(given, **user)
    except CommitConflictError:
        assert must or may, "refused for nothing"
        for held in taken:
            table.writer().discard(held.changes)
        return False
    assert not must, "not refused"
    for held in taken:
        life.took(held.rows)
    if user and done.snapshot_ids:
        life.clock.sleep(1)
        assert life.current(rng).commit(given, **user).already_committed
    return True


def prospects(life, taken):
    """Whether a commit must be refused, and whether it may be."""
    must = may = False
    counts = dict(life.counts)
    for held in taken:
        if not held.rows:
            may = True
            continue
        must = must or life.retyped(held.schema_id)
        if life.mode.fixed:
            for bucket, partition in where(life, held):
                must = must or counts.setdefault(partition, bucket.total_buckets) != bucket.total_buckets
        if life.mode.dynamic:
            others = {life.content.at(row) for one in taken if one is not held for _, row in one.rows}
            own = {life.content.at(row) for _, row in held.rows}
            may = may or life.rival(held.since, held.rows) or bool(own & others)
    return must, may


def where(life, held):
    return [(bucket, partition_of(life, bucket.partition)) for bucket in held.changes.buckets if bucket.written.added]


def commit_again(life, rng):
    """A commit with an identifier is repeated by a process that does not know whether it happened."""
    table = life.current(rng)
    held = made(life, rng, table)
    if held is None:
        return
    identifier = next(life.identifiers)
    done = table.commit(held.changes, user="again", identifier=identifier)
    life.took(held.rows)
    life.observe()
    if rng.random() < 0.5:
        write(life, rng)
    process = life.opened()
    latest = process.snapshot()
    again = process.commit(bytes(held.changes), user="again", identifier=identifier)
    assert again.already_committed or not done.snapshot_ids
    assert life.opened().snapshot() == latest


def discard_held(life, rng):
    """What waited is given up."""
    if life.held:
        held = life.held.pop(rng.randrange(len(life.held)))
        life.current(rng).writer().discard(held.changes)


def go_on_writing(life, rng):
    """A writer that stays open takes rows, and may hand over what it has."""
    if not life.writers or (len(life.writers) < WRITERS_MAX and rng.random() < 0.4):
        table = life.current(rng)
        life.writers.append(Open(table.writer(), table.schema, life.commits, dict(life.counts)))
    one = rng.choice(life.writers)
    pairs = life.some(rng, one)
    data = life.arrow(one, pairs)
    if life.closed(one.schema, life.partitions(pairs), one.counts):
        with life.refused(UsageError):
            one.writer.write_arrow(data)
        life.writers.remove(one)
        return
    one.writer.write_arrow(data)
    one.rows = [*one.rows, *pairs]
    if rng.random() < 0.7:
        hand_over(life, rng, one)


def hand_over(life, rng, one):
    held = Held(one.writer.changes(), one.schema.id, one.rows, -1 if one.loose else one.since)
    one.rows, ends = [], False
    if rng.random() < 0.7:
        one.loose |= not commit(life, rng, [held])
    elif len(life.held) < HELD_MAX:
        life.held.append(held)
        one.loose = True
    else:
        one.writer.discard(held.changes)
        ends, one.loose = life.mode.moves, True
    if ends or rng.random() < 0.4:
        one.writer.close()
        life.writers.remove(one)


def stop_writing(life, rng):
    """Writers end: by handing over, or by giving up."""
    for one in list(life.writers):
        if rng.random() < 0.5:
            one.writer.abort()
            life.writers.remove(one)
        else:
            hand_over(life, rng, one)
            if one in life.writers:
                one.writer.abort()
                life.writers.remove(one)


def write_shared(life, rng):
    """Several writers fill dynamic buckets at once, each with the rows of its keys."""
    if not life.mode.shared:
        write(life, rng)
        return
    table = life.current(rng)
    count = rng.choice([2, 3, 4])
    pairs = life.some(rng, table, rng.choice([10, 25]))
    data = life.arrow(table, pairs)
    numbers = table.writer_numbers(data, count)
    changes = []
    for number in rng.sample(range(count), count):
        with table.writer(share=(number, count)) as writer:
            mask = pa.compute.equal(numbers, number)
            writer.write_arrow(data.filter(mask))
            changes.append(writer.changes())
    table.commit(changes)
    life.took(pairs)


# -- other schemas ---


def add_column(life, rng):
    table = life.current(rng)
    if len(life.columns) >= COLUMNS_MAX:
        return
    name = f"a{len(life.columns)}"
    table.alter(AddColumn(name, "INT"))
    altered(life, table, {**life.columns, name: "INT"})


def widen(life, rng):
    table = life.current(rng)
    narrow = [name for name, text in life.columns.items() if text == "INT" and name != "p"]
    if narrow and life.mode.engine != "aggregation":
        name = rng.choice(narrow)
        table.alter(UpdateColumnType(name, "BIGINT"))
        altered(life, table, {**life.columns, name: "BIGINT"})


def altered(life, table, columns):
    life.columns = columns
    life.latest_schema = table.schema.id
    life.columns_of[table.schema.id] = columns


def reopen(life, rng):
    life.reopen(life.pick(rng))
