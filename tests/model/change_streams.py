"""Streams that lag behind: whoever reads one, and stores the place with what was made of the steps, loses and doubles nothing."""

from __future__ import annotations

import msgspec
from model.change_life import Fold, told

FOLLOWERS_MAX = 3


class Follower(msgspec.Struct):
    """Somebody who reads a stream: what was stored, and the stream that goes on from there.

    `consumer`: the table keeps the position. `started`: the whole table has been read. `schema_id`: the columns that the
    stream knows.
    """

    fold: Fold
    position: str | None = None
    consumer: str | None = None
    started: bool = False
    stream: object = None
    schema_id: int = 0


def follow_on(life, rng):
    """Somebody reads some steps of a stream, and stores the place with what was made of them, or loses both."""
    if len(life.followers) < FOLLOWERS_MAX and (not life.followers or rng.random() < 0.3):
        life.followers_made += 1
        consumer = f"c{life.followers_made}" if rng.random() < 0.4 else None
        life.followers.append(Follower(Fold(life), consumer=consumer))
    one = rng.choice(life.followers)
    if one.stream is None or one.schema_id != life.latest_schema or rng.random() < 0.4:
        how = {} if one.consumer is None else {"consumer_id": one.consumer}
        one.stream = life.opened().stream(from_=one.position or "full", **how)
        one.schema_id = life.latest_schema
    fold, position, started = one.fold.copy(), one.position, one.started
    for _ in range(rng.choice([1, 1, 2, 5, 1000])):
        step = one.stream.poll()
        if step is None:
            caught_up(life, fold)
            break
        rows = rows_of(life, rng, step)
        assert step.is_full != started, "the whole table comes first, and once"
        started, position = True, step.position
        if step.is_full:
            fold.begin(rows, step.next_snapshot_id)
        else:
            apply_step(life, fold, rows, step.next_snapshot_id)
        if one.consumer is not None and rng.random() < 0.7:
            step.acknowledge()
            one.fold, one.started = fold.copy(), True
    if one.consumer is not None or rng.random() < 0.2:
        one.stream = None  # the process ends, and what it has not stored is lost
    else:
        one.fold, one.position, one.started = fold, position, started


def rows_of(life, rng, step):
    if life.mode.moves or rng.random() < 0.5:
        return life.in_order((split.bucket, step.read(split)) for split in step.splits())
    return step.to_arrow().to_pylist()


def apply_step(life, fold, rows, following):
    """What a step tells of partitions that were not overwritten since the fold has them."""
    lost = {partition for partition in life.overwritten if fold.has_lost(life, partition, following)}
    fold.apply([row for row in rows if row.get("p") not in lost])


def caught_up(life, fold):
    """Who has read everything knows what the life knows of its snapshots' changes."""
    if not fold.started_at:
        assert not life.followed, "a table with snapshots gives none"
        return
    partitions = {*life.overwritten, *fold.partitions(), *life.fold.partitions()} - life.doubtful
    for partition in partitions:
        if fold.has_lost(life, partition, life.followed + 1):
            fold.take(life.fold, partition, life.followed + 1)
        elif told(life.mode) or not life.mode.hides:
            assert fold.part(partition) == life.fold.part(partition), f"a stream has other rows in {partition}"
