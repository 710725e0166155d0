"""Processes write rows and change rows of one table at once: every snapshot is the one before it and one operation.

So it does not matter who was overtaken how often: nobody has seen half an operation, and none worked on old rows.
"""

from __future__ import annotations

import multiprocessing
import queue
import random

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from paimon_py import Catalog, CommitConflictError, Table, col

CONTEXT = multiprocessing.get_context("spawn")
SCHEMA = pa.schema([pa.field("p", pa.int32(), False), pa.field("k", pa.int64(), False), pa.field("n", pa.int64())])
KEYS = 600
REMOVE = "partial-update.remove-record-on-delete"
KINDS = {
    "buckets": {"bucket": "2"},
    "one bucket": {"bucket": "1", "write-only": "true"},
    "dynamic": {"bucket": "-1", "dynamic-bucket.target-row-num": "200"},
    "vectors": {"bucket": "2", "deletion-vectors.enabled": "true"},
    "partial update": {"bucket": "2", "merge-engine": "partial-update", REMOVE: "true"},
}


def rows(values):
    """As a table; None deletes."""
    data = pa.table({"p": [k % 2 for k in values], "k": list(values), "n": list(values.values())}, SCHEMA)
    return data.append_column("_row_kind", pa.array(["-D" if n is None else "+U" for n in values.values()], pa.string()))


def write_many(path, seed, count, answers):
    """Upserts, deletes, now and then a compaction."""
    rng, table = random.Random(seed), Table.open(path)
    for _ in range(count):
        values = {k: None if rng.random() < 0.2 else rng.randrange(1000) for k in rng.sample(range(KEYS), rng.choice([1, 5, 30]))}
        answers.put((table.write_arrow(rows(values)).snapshot_ids[0], ("write", values)))
        if rng.random() < 0.1:
            try:
                table.compact(full=True)
            except CommitConflictError:
                continue


def change_many(path, seed, count, answers):
    """Updates, deletes and merges; those that lose every round change nothing."""
    rng, table = random.Random(seed), Table.open(path)
    for _ in range(count):
        verb, limit = rng.choice(["update", "delete", "merge", "merge and add"]), rng.randrange(1000)
        keys = rng.sample(range(KEYS), 40)
        try:
            if verb == "update":
                done = table.update(col("n") < limit, {"n": lambda batch: pc.add(batch["n"], 1000)})
            elif verb == "delete":
                done = table.delete((col("n") >= limit) & (col("n") < limit + 20))
            else:
                source = rows(dict.fromkeys(keys, limit)).drop_columns(["_row_kind"])
                done = table.merge(
                    source, ["p", "k"], when_matched_update={"n": "source.n"}, when_not_matched_insert=verb == "merge and add"
                )
        except CommitConflictError:
            continue
        if done.snapshot_ids:
            answers.put((done.snapshot_ids[0], (verb, limit, keys)))


def after(state, verb, what, keys=()):
    """The rows after an operation."""
    if verb == "write":
        return {k: n for k, n in {**state, **what}.items() if n is not None}
    if verb == "update":
        return {k: n + 1000 if n < what else n for k, n in state.items()}
    if verb == "delete":
        return {k: n for k, n in state.items() if not what <= n < what + 20}
    return {**state, **{k: what for k in keys if k in state or verb == "merge and add"}}


def live(warehouse, options, seed, count, partition_by):
    catalog = Catalog.open(str(warehouse))
    catalog.create_database("db", exist_ok=True)
    options = {**options, "snapshot.num-retained.min": "100000", "snapshot.num-retained.max": "100000"}
    table = catalog.create_table("db.t", SCHEMA, primary_key=["p", "k"], partition_by=partition_by, options=options)
    first = {k: k for k in range(KEYS)}
    done = {table.write_arrow(rows(first)).snapshot_ids[0]: ("write", first)}
    answers = CONTEXT.Queue()
    given = [(table.location, seed, count, answers), (table.location, seed + 1, count, answers)]
    workers = [CONTEXT.Process(target=work, args=args) for work, args in zip((write_many, change_many), given)]
    for worker in workers:
        worker.start()
    while any(worker.is_alive() for worker in workers) or not answers.empty():
        try:
            number, operation = answers.get(timeout=0.5)
        except queue.Empty:
            continue
        assert number not in done
        done[number] = operation
    assert [worker.exitcode for worker in workers] == [0, 0]
    check_history(table, done)


def check_history(table, done):
    state, changed = {}, 0
    for snapshot in sorted(table.snapshots(), key=lambda each: each.id):
        if snapshot.id in done:
            state = after(state, *done[snapshot.id])
            changed += done[snapshot.id][0] != "write"
        else:
            assert snapshot.commit_kind.value == "COMPACT"
        every = {"deletion-vectors.merge-on-read": "true"}
        found = table.scan(snapshot_id=snapshot.id, options=every).to_arrow()
        assert dict(zip(found["k"].to_pylist(), found["n"].to_pylist())) == state, f"snapshot {snapshot.id}"
    assert changed


@pytest.mark.parametrize("kind", ["buckets", "dynamic", "vectors"])
def test_every_snapshot_is_the_one_before_and_one_operation(tmp_path, kind):
    live(tmp_path, KINDS[kind], 1, 12, ["p"])


@pytest.mark.full
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(10, 20))
def test_every_snapshot_is_the_one_before_and_one_operation_for_long(tmp_path, kind, seed):
    live(tmp_path, KINDS[kind], seed, 80, ["p"] if seed % 2 else [])
