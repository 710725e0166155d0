"""Random lives of a bucket or two: writers and compactors that commit late, beside each other, against a dict.

Who commits later is newer, whatever was compacted meanwhile; a compaction changes no row; every file that is left
belongs to some snapshot.
"""

from __future__ import annotations

import random

import msgspec
import pyarrow as pa
import pytest
from unit.commit.support import TABLE, below, new_store, root_on, schema

from paimon_py import CommitConflictError, Table
from paimon_py.commit.changes import BucketChanges, Changes
from paimon_py.compaction.plan import Moment, tasks_of
from paimon_py.compaction.run import run_task
from paimon_py.metadata.open_table import OpenTable
from paimon_py.spec.data_file import FileKind, ManifestEntry

OPTIONS = [
    {},
    {"num-levels": "3"},
    {"target-file-size": "3 kb"},
    {"ignore-delete": "true"},
    {"compaction.force-up-level-0": "true"},
    {"file.format.per.level": "0:avro"},
    {"compaction.max-size-amplification-percent": "20"},
]


class Life:
    """A table, what it must hold, and work that is finished but not committed."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        options = {
            "bucket": self.rng.choice("12"),
            "num-sorted-run.compaction-trigger": self.rng.choice("234"),
            "write-only": "true",
            **self.rng.choice(OPTIONS),
        }
        self.schema = schema(primary_key=["k"], options=options)
        self.root = root_on(new_store(self.schema))
        self.table = Table(self.root, self.schema, "t")
        self.rows: dict[int, str] = {}
        self.held: list[tuple[Changes, dict[int, str | None]]] = []
        self.done = 0

    def step(self) -> None:
        self.done += 1
        verbs = [self.write, self.write, self.hold_write, self.hold_compaction, self.hold_both, self.compact, self.commit_held, self.commit_held]
        self.rng.choice(verbs)()

    def written(self) -> tuple[Changes, dict[int, str | None]]:
        """Random rows in files, and what they will do."""
        keys = [self.rng.randrange(40) for _ in range(self.rng.choice([1, 5, 30]))]
        kinds = [self.rng.choice(["+I", "+U", "-D"]) for _ in keys]
        values = [f"{self.done}-{at}" * self.rng.randrange(1, 20) for at in range(len(keys))]
        kept = self.schema.options.get("ignore-delete") == "true"
        effect = {k: None if kind == "-D" else v for k, kind, v in zip(keys, kinds, values) if not (kept and kind == "-D")}
        numbers = pa.array(keys, pa.int32())
        with self.table.writer() as writer:
            writer.write_arrow(pa.table({"p": numbers, "k": numbers, "v": values, "_row_kind": kinds}))
        return writer.changes(), effect

    def acknowledge(self, effect: dict[int, str | None]) -> None:
        for key, value in effect.items():
            if value is None:
                self.rows.pop(key, None)
            else:
                self.rows[key] = value

    def write(self) -> None:
        changes, effect = self.written()
        self.table.commit(changes)
        self.acknowledge(effect)

    def hold_write(self) -> None:
        self.held.append(self.written())

    def hold_compaction(self) -> None:
        for task in self.table.compaction_tasks(full=self.rng.random() < 0.5):
            self.held.append((self.table.run_compaction(type(task).from_bytes(bytes(task))), {}))

    def hold_both(self) -> None:
        """New rows, and a compaction that takes them along."""
        latest = self.root.snapshots.latest()
        if latest is None:
            return
        changes, effect = self.written()
        entries = self.root.manifests.live_entries(latest).entries()
        entries += [
            ManifestEntry(kind=FileKind.ADD, partition=bucket.partition, bucket=bucket.bucket, total_buckets=bucket.total_buckets, file=file)
            for bucket in changes.buckets
            for file in bucket.written.added
        ]
        tasks = tasks_of(self.schema, latest, entries, full=self.rng.random() < 0.5, moment=Moment(0))
        by_bucket: dict[int, BucketChanges] = {bucket.bucket: bucket for bucket in changes.buckets}
        for task in tasks:
            if task.bucket in by_bucket:
                made = run_task(OpenTable(self.root, self.schema), task)
                by_bucket[task.bucket] = msgspec.structs.replace(made, written=by_bucket[task.bucket].written)
        self.held.append((msgspec.structs.replace(changes, buckets=tuple(by_bucket.values())), effect))

    def compact(self) -> None:
        self.table.compact(full=self.rng.random() < 0.4)

    def commit_held(self) -> None:
        if not self.held:
            return
        self.rng.shuffle(self.held)
        taken = [self.held.pop() for _ in range(min(len(self.held), self.rng.choice([1, 1, 2, 3])))]
        try:
            self.table.commit([changes for changes, _ in taken])
        except CommitConflictError:
            assert not any(bucket.written.added for changes, _ in taken for bucket in changes.buckets), "rows were refused"
            for changes, _ in taken:
                self.table.writer().discard(changes)
            return
        for _, effect in taken:
            self.acknowledge(effect)

    def check(self) -> None:
        found = self.table.scan(columns=["k", "v"]).to_arrow().to_pydict()
        assert len(set(found["k"])) == len(found["k"])
        assert dict(zip(found["k"], found["v"])) == self.rows

    def check_files(self) -> None:
        while self.held:
            self.commit_held()
        self.check()
        named = set()
        for number in self.root.snapshots.ids():
            snapshot = self.root.snapshots.get(number)
            named |= set(self.root.manifests.live_entries(snapshot).names().to_pylist())
            assert self.table.scan(snapshot_id=number).to_arrow() is not None
        stored = {path.rsplit("/", 1)[1] for path in below(self.root.store, TABLE) if "/bucket-" in path}
        assert stored == named


def live(seed: int, steps: int) -> None:
    life = Life(seed)
    for _ in range(steps):
        life.step()
        life.check()
    life.check_files()


@pytest.mark.parametrize("seed", range(14))
def test_rows_survive_any_order_of_writers_and_compactors(seed):
    live(seed, 25)


@pytest.mark.full
@pytest.mark.parametrize("seed", range(100, 250))
def test_rows_survive_any_order_of_writers_and_compactors_for_long(seed):
    live(seed, 60)
