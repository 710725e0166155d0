"""A write into dynamic buckets as an engine runs it: assigned by processes, then written by processes."""

from __future__ import annotations

import pickle
import random

import pyarrow as pa

from paimon_py.distributed import (
    AssignedMergePart,
    BucketRouting,
    CommitLabel,
    DistributedMerge,
    DistributedWrite,
    RowRouting,
    assigned_changes,
    assigned_rows,
    run_once,
)


def elsewhere(part):
    """The part as another process has it."""
    return pickle.loads(pickle.dumps(part))


class TwoSteps:
    """Runs both steps of a write, each process with its input in an order of its own."""

    def __init__(self, table, data, count, *, overwrite=None, seed=0):
        self.writing = DistributedWrite(table, overwrite)
        self.count = self.writing.writers(count)
        assert self.writing.takes_two_steps(self.count)
        self.first, self.second = map(elsewhere, self.writing.steps(data.schema, self.count))
        self.random = random.Random(seed)
        routing = elsewhere(RowRouting(table.schema, data.schema, self.count))
        self.given = [[] for _ in range(self.count)]
        for batch in data.to_batches(max_chunksize=7):
            numbers = routing(batch)
            for number in range(self.count):
                self.given[number].append((number, batch.filter(pa.array(numbers == number))))

    def assign(self, number):
        return list(self.first(self.shuffled(self.given[number])))

    def write(self, number, sent):
        return list(self.second(self.shuffled([(one.kind, one.data) for one in sent if one.process == number])))

    def shuffled(self, items):
        return self.random.sample(items, len(items))

    def results(self):
        sent = [one for number in range(self.count) for one in self.assign(number)]
        return [result for number in range(self.count) for result in self.write(number, sent)]

    def commit(self, results, label=CommitLabel()):
        changes, fit = assigned_changes(results)
        assert fit
        return self.writing.commit(changes, label)


def merge_in_steps(table, data, on, clauses, count, *, seed=0, repeat=None, rivals=()):
    """A merge into dynamic buckets as an engine runs it.

    Args:
        repeat: a share that is assigned again for the last process.
        rivals: each is called in a round, after the snapshot is known.
    """
    merging = DistributedMerge("merge", table, data.schema, on, clauses)
    count = merging.parts(count)
    assert merging.takes_two_steps(count)
    homes, chosen = BucketRouting(table.schema, count), random.Random(seed)
    target = pa.schema([field.with_name(merging.keys.get(field.name, f"source.{field.name}")) for field in data.schema])

    rivals = list(rivals)

    def gather(part, splits):
        if rivals:
            rivals.pop(0)()
        own = elsewhere(AssignedMergePart(part, target, count))
        routing = elsewhere(RowRouting(table.schema, target, count))
        given = [[] for _ in range(count)]
        for batch in data.rename_columns(target.names).cast(target).to_batches(max_chunksize=7):
            numbers = routing(batch)
            for number in range(count):
                given[number].append((number, batch.filter(pa.array(numbers == number))))
        sent = {number: list(own.first(chosen.sample(rows, len(rows)))) for number, rows in enumerate(given)}
        work = [[] for _ in range(count)]
        for number, split in enumerate(splits):
            work[homes.of_bucket(split.partition, split.bucket)].append((number, bytes(split)))
        results = []
        for number in range(count):
            if repeat is not None and number == count - 1:
                sent[repeat] = list(own.first(given[repeat]))
            mine = [(one.kind, one.data) for each in sent.values() for one in each if one.process == number]
            results += own(chosen.sample(mine, len(mine)), work[number])
        done, fit = assigned_rows(results)
        if not fit:
            merging.discard(done)
            raise Torn
        return done

    return run_once(table, CommitLabel(), lambda: merging.run(CommitLabel(), gather))


class Torn(Exception):
    """Two runs assigned the rows of one share."""
