"""A write into dynamic buckets as an engine runs it: assigned by processes, then written by processes."""

from __future__ import annotations

import pickle
import random

import pyarrow as pa

from paimon_py.distributed import CommitLabel, DistributedWrite, RowRouting, assigned_changes


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
