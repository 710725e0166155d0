"""A table that lives with its tags, branches, consumers, readers and cleaners, on a clock that moves.

What is known of every state is what was written. After each step that lets something go, every snapshot and tag of every
branch that is left reads its rows, and nobody waits for a snapshot that is gone. After cleaning nothing older than the
limit is left that no state names.
"""

from __future__ import annotations

import random
import warnings
from datetime import timedelta

import pyarrow as pa
from model.plans_in_parts import PLANS
from unit.commit.support import Clock

from paimon_py import Catalog, PaimonWarning, SnapshotExpiredError, Table
from paimon_py.env import Env, SerialPool
from paimon_py.storage.memory_store import MemoryStore
from paimon_py.storage.store import FileMissingError

PATH = "/w/d.db/t"
HOUR = 3_600_000
COLUMNS = pa.schema([pa.field("k", pa.int64(), nullable=False), ("v", pa.int64())])
KINDS = {
    "keyed": {"bucket": "1"},
    "told": {"bucket": "1", "changelog-producer": "lookup", "changelog.num-retained.min": "2", "changelog.num-retained.max": "6"},
    "input": {"bucket": "2", "changelog-producer": "input"},
    "vectors": {"bucket": "1", "deletion-vectors.enabled": "true"},
    "dynamic": {"bucket": "-1"},
}
KEEPING = (
    {"snapshot.num-retained.min": "1", "snapshot.num-retained.max": "4"},
    {"snapshot.num-retained.min": "2", "snapshot.time-retained": "30 min"},
    {"write-only": "true"},
    {"snapshot.num-retained.min": "1", "snapshot.time-retained": "3 h", "consumer.expiration-time": "1 d"},
)
WEIGHTS = {
    "write": 10, "tick": 6, "compact": 2, "tag": 2, "untag": 1, "branch": 1, "leave": 1, "forward": 1, "rollback": 1,
    "follow": 2, "plan": 2, "read": 3, "expire": 4, "expire_changelogs": 1, "abandon": 2, "plant": 1, "clean": 2,
}  # fmt: skip
MAIN = "main"


class KeptLife:
    """One life. `went`: how many files were let go by cleaning, and snapshots by any expiry."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.clock = Clock(1_700_000_000_000)
        self.store = MemoryStore(clock=self.clock)
        catalog = Catalog(self.store, "/w", env=Env(self.clock, None, SerialPool()))
        catalog.create_database("d")
        self.kind = self.rng.choice(list(KINDS))
        options = {**KINDS[self.kind], **self.rng.choice(KEEPING)}
        self.table = catalog.create_table("d.t", COLUMNS, primary_key=["k"], options=options)
        self.rows: dict[str, dict[int, int]] = {MAIN: {}}
        self.states: dict[str, dict[str, dict[int, int]]] = {MAIN: {}}
        self.written: dict[str, dict[int, int]] = {}
        self.plans: list[tuple[object, list, dict[int, int]]] = []
        self.made = 0
        self.went = {"files": 0, "snapshots": 0, "expired reads": 0}

    def play(self, steps: int) -> None:
        for number in range(steps):
            name = self.rng.choices(list(WEIGHTS), list(WEIGHTS.values()))[0]
            branch = self.rng.choice(list(self.rows))
            getattr(self, name)(branch)
            if number % 5 == 0 or name in ("expire", "untag", "leave", "forward", "rollback", "clean"):
                self.check()

    # -- what is looked at ----------------------------------------------------------------------------------------------

    def on(self, branch: str) -> Table:
        return self.table.branch(branch)

    def check(self) -> None:
        """Every state that is left reads its rows."""
        for branch, states in self.states.items():
            table = self.on(branch)
            ids = [snapshot.id for snapshot in table.snapshots()]
            for snapshot in table.snapshots():
                assert read(table.scan(snapshot_id=snapshot.id)) == states[snapshot.value.mark], (branch, snapshot)
            for tag in table.tags():
                assert read(table.scan(tag=tag.name)) == states[tag.value.snapshot.mark], (branch, tag)
            for consumer in table.consumers():
                wanted = consumer.next_snapshot_id
                assert not ids or wanted >= ids[0] or self._is_told(table, wanted), (branch, consumer, ids)

    def _is_told(self, table: Table, number: int) -> bool:
        return table._root.changelogs.find(number) is not None

    def noted(self, branch: str) -> None:
        """Note the rows of the snapshots that came just now: those written, unless a compaction has yet to show them."""
        table = self.on(branch)
        for snapshot in table.snapshots():
            if snapshot.value.mark not in self.states[branch]:
                shown = read(table.scan(snapshot_id=snapshot.id)) if self.kind == "vectors" else dict(self.rows[branch])
                self.states[branch][snapshot.value.mark] = shown
                self.written[snapshot.value.mark] = dict(self.rows[branch])

    # -- steps --------------------------------------------------------------------------------------------------------

    def write(self, branch: str) -> None:
        self.made += 1
        keys = self.rng.sample(range(12), self.rng.randrange(1, 5))
        gone = [self.rng.random() < 0.2 for _ in keys]
        rows = pa.table({"k": keys, "v": [self.made] * len(keys), "_row_kind": ["-D" if one else "+I" for one in gone]})
        before = self.count(branch)
        self.on(branch).write_arrow(rows)
        for key, is_gone in zip(keys, gone):
            self.rows[branch].pop(key, None) if is_gone else self.rows[branch].update({key: self.made})
        self.noted(branch)
        self.went["snapshots"] += before >= self.count(branch)
        if self.kind != "vectors" or self.on(branch).options.get("write-only") != "true":
            assert read(self.on(branch).scan()) == self.rows[branch]

    def count(self, branch: str) -> int:
        return len(self.on(branch).snapshots())

    def tick(self, branch: str) -> None:
        self.clock.start += self.rng.choice([60_000, 10 * 60_000, HOUR, 5 * HOUR, 30 * HOUR])

    def compact(self, branch: str) -> None:
        self.on(branch).compact(full=self.rng.random() < 0.7)
        self.noted(branch)

    def tag(self, branch: str) -> None:
        snapshots = self.on(branch).snapshots()
        if snapshots:
            self.made += 1
            retain = self.rng.choice([None, timedelta(hours=2)])
            self.on(branch).create_tag(f"t{self.made}", snapshot_id=self.rng.choice(snapshots).id, retain=retain)

    def untag(self, branch: str) -> None:
        tags = self.on(branch).tags()
        if tags and self.rng.random() < 0.7:
            self.on(branch).delete_tag(self.rng.choice(tags).name)
        else:
            self.on(branch).expire_tags()

    def branch(self, branch: str) -> None:
        table = self.on(branch)
        begins = [tag.name for tag in table.tags()] + [snapshot.id for snapshot in table.snapshots()]
        if len(self.rows) > 3 or not begins:
            return
        self.made += 1
        name, begin = f"b{self.made}", self.rng.choice(begins)
        made = table.create_branch(name, from_=begin)
        mark = made.snapshots()[-1].value.mark
        self.states[name] = {mark: self.states[branch][mark]}
        self.rows[name] = dict(self.written[mark])

    def leave(self, branch: str) -> None:
        if branch != MAIN and self.rng.random() < 0.5:
            self.table.delete_branch(branch)
            del self.rows[branch], self.states[branch]

    def forward(self, branch: str) -> None:
        if branch == MAIN or not self.on(branch).snapshots():
            return
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PaimonWarning)  # of consumers, which are deleted
            self.on(MAIN).fast_forward(branch, discard=True)
        self.states[MAIN] |= self.states[branch]
        self.rows[MAIN] = dict(self.rows[branch])
        self._forget_consumers(MAIN)

    def rollback(self, branch: str) -> None:
        table = self.on(branch)
        targets = [tag.name for tag in table.tags()] + [snapshot.id for snapshot in table.snapshots()]
        if not targets or self.kind == "dynamic":
            return
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PaimonWarning)
            table.rollback_to(self.rng.choice(targets))
        self.rows[branch] = dict(self.written[self.on(branch).snapshot().value.mark])
        self._forget_consumers(branch)

    def _forget_consumers(self, branch: str) -> None:
        for consumer in self.on(branch).consumers():
            self.on(branch).delete_consumer(consumer.name)

    def follow(self, branch: str) -> None:
        """A consumer reads on, and may say so."""
        stream = self.on(branch).stream(consumer_id=self.rng.choice("xy"), from_="latest")
        try:
            while (step := stream.poll()) is not None:
                step.to_arrow()
                if self.rng.random() < 0.7:
                    step.acknowledge()
        except SnapshotExpiredError:
            self._forget_consumers(branch)

    def plan(self, branch: str) -> None:
        """A reader plans, and reads later."""
        table = self.on(branch)
        states = [({"snapshot_id": one.id}, one.value) for one in table.snapshots()]
        states += [({"tag": one.name}, one.value.snapshot) for one in table.tags()]
        if states:
            given, snapshot = self.rng.choice(states)
            scan, splits = self.rng.choice(PLANS)(self.rng, table, given)
            self.plans.append((scan, splits, self.states[branch][snapshot.mark]))

    def read(self, branch: str) -> None:
        """A plan gives the rows of its snapshot, or says that the snapshot has expired."""
        if self.plans:
            scan, splits, rows = self.plans.pop(self.rng.randrange(len(self.plans)))
            try:
                found = [batch for split in splits for batch in scan.read(split)]
            except SnapshotExpiredError:
                self.went["expired reads"] += 1
                return
            assert held(found) == rows

    def expire(self, branch: str) -> None:
        least = self.rng.randrange(1, 5)
        most = self.rng.choice([least, least + 2, 2**31 - 1])
        age = self.rng.choice([timedelta(0), timedelta(hours=1), timedelta(hours=8)])
        result = self.on(branch).expire_snapshots(retain_min=least, retain_max=most, older_than=age)
        self.went["snapshots"] += len(result.snapshot_ids)

    def expire_changelogs(self, branch: str) -> None:
        self.on(branch).expire_changelogs(retain_min=1, retain_max=self.rng.randrange(1, 5))

    def abandon(self, branch: str) -> None:
        """A writer dies with what it wrote."""
        writer = self.on(branch).writer()
        writer.write_arrow(pa.table({"k": [1, 2], "v": [0, 0]}))
        writer.changes()

    def plant(self, branch: str) -> None:
        self.made += 1
        place = self.rng.choice(["manifest/manifest-", "bucket-0/data-", "index/index-", "statistics/stat-"])
        self.store.put(f"{PATH}/{place}planted-{self.made}", b"x")

    def clean(self, branch: str) -> None:
        hours = self.rng.choice([1, 4, 24])
        self.went["files"] += self.on(branch).remove_orphans(older_than=timedelta(hours=hours), dry_run=False).files
        limit = self.clock.millis() - hours * HOUR
        named = set().union(*(names_of(self.on(name)) for name in self.rows))
        left = [path for path, made in files(self.store, PATH) if made < limit and path.rpartition("/")[2] not in named]
        assert left == [], left


def read(scan) -> dict[int, int]:
    return held(scan.to_arrow().to_batches())


def held(batches) -> dict[int, int]:
    return {row["k"]: row["v"] for batch in batches for row in batch.to_pylist()}


def names_of(table: Table) -> set[str]:
    """Names of all files that a branch's snapshots, tags and kept changelogs name, those they took away among them."""
    root, names = table._root, set()
    left = [root.snapshots.get(number) for number in root.snapshots.ids()]
    told = [found for number in root.changelogs.ids() if (found := root.changelogs.find(number)) is not None]
    for snapshot in [*left, *(tag.snapshot for tag in root.tags.list())]:
        names |= root.manifests.file_names(snapshot)
        for one in (snapshot.base_manifest_list, snapshot.delta_manifest_list):
            manifests = root.manifests.read_list(one)
            names |= {one, *(manifest.name for manifest in manifests)}
            names |= set(root.manifests.read_entries(manifests).names().to_pylist())
        names |= {snapshot.index_manifest, snapshot.statistics} - {None}
    for snapshot in [*left, *told, *(tag.snapshot for tag in root.tags.list())]:
        lists = [snapshot.changelog_manifest_list]
        if snapshot in told and snapshot.changelog_manifest_list is None:
            lists = [snapshot.base_manifest_list, snapshot.delta_manifest_list]
        for one in filter(None, lists):
            try:
                manifests = root.manifests.read_list(one)
                names |= {one, *(manifest.name for manifest in manifests)}
                names |= set(root.manifests.read_entries(manifests).names().to_pylist())
            except FileMissingError:
                continue  # the changelog of a tag went with its snapshot, from which a branch may have begun
    return names


def files(store: MemoryStore, directory: str):
    """Paths and times of all data, index, statistics and manifest files."""
    for status in store.list(directory):
        if status.is_directory:
            yield from files(store, status.path)
        elif directory.rpartition("/")[2] in ("manifest", "index", "statistics") or "/bucket-" in directory:
            yield status.path, status.modified_millis
