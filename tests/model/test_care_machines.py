"""Random lives of tables that commits, callers and other processes care for, on a clock that moves.

After every step each snapshot, tag and branch that is left has the rows that it was committed with, and at the end no file
is there that nothing names, but for those of rollbacks and of branches that went.
"""

from __future__ import annotations

import contextlib
import random
import warnings
from datetime import timedelta

import pyarrow as pa
import pytest
from unit.commit.support import Clock, Ids

from paimon_py import Catalog, PaimonWarning, SetOption
from paimon_py.env import Env, SerialPool
from paimon_py.errors import AlreadyExistsError, NotFoundError
from paimon_py.metadata.consumers import Consumer
from paimon_py.metadata.root import TableRoot
from paimon_py.storage.memory_store import MemoryStore
from paimon_py.storage.store import FileMissingError
from paimon_py.table import Table

PATH = "/w/d.db/t"
SCHEMA = pa.schema([pa.field("p", pa.int32(), nullable=False), pa.field("k", pa.int64(), nullable=False), ("v", pa.string())])
KINDS = {
    "keyed": (["p", "k"], {"bucket": "1"}),
    "vectors": (["p", "k"], {"bucket": "2", "deletion-vectors.enabled": "true"}),
    "dynamic": (["p", "k"], {"bucket": "-1"}),
    "told": (["p", "k"], {"bucket": "1", "changelog-producer": "lookup"}),
    "append": ([], {"bucket": "-1", "deletion-vectors.enabled": "true", "compaction.min.file-num": "3"}),
}
BOUNDED_STEPS, BOUNDED_LIVES = 20, 1
FULL_STEPS, FULL_LIVES, SHARDS = 60, 20, 10
"""In each shard so many lives of every kind: 60,000 steps in all."""


def drawn_options(rng):
    """What is kept: few snapshots, some of them by their age, perhaps changelogs and tags."""
    least = rng.randrange(1, 5)
    options = {"snapshot.num-retained.min": str(least), "snapshot.num-retained.max": str(least + rng.choice([0, 1, 5, 1000])),
               "snapshot.time-retained": rng.choice(["1 ms", "10 min", "1 h"]), "snapshot.expire.limit": rng.choice(["1", "3", "50"]),
               "consumer.expiration-time": "2 h", "manifest.merge-min-count": rng.choice(["2", "30"])}  # fmt: skip
    if rng.random() < 0.4:
        options |= {"changelog.num-retained.min": str(least + 2), "changelog.num-retained.max": str(least + 1005)}
    if rng.random() < 0.6:
        options |= {"tag.automatic-creation": rng.choice(["process-time", "batch"]), "tag.creation-period": "hourly",
                    "sink.process-time-zone": "UTC", "tag.num-retained-max": str(rng.randrange(1, 4)),
                    "tag.automatic-completion": rng.choice(["true", "false"])}  # fmt: skip
    if rng.random() < 0.5:
        options |= {"snapshot.clean-empty-directories": "true", "tag.default-time-retained": "3 h"}
    return options


class Life:
    """One table.

    Attributes:
        rows: of each state that was committed, by the mark of its snapshot.
    """

    def __init__(self, kind, seed):
        self.rng = random.Random(f"{kind} {seed}")
        self.clock = Clock()
        self.store = MemoryStore(clock=self.clock)
        self.owners = iter(range(10**9))
        self.rows = {}
        self.loose = False
        key, options = KINDS[kind]
        catalog = Catalog(self.store, "/w", env=self.env())
        catalog.create_database("d")
        options = {**options, "num-sorted-run.compaction-trigger": self.rng.choice(["2", "5"]), **drawn_options(self.rng)}
        catalog.create_table("d.t", SCHEMA, primary_key=key, partition_by=["p"], options=options)
        self.open()

    def env(self):
        return Env(self.clock, Ids(f"o{next(self.owners)}-"), SerialPool())

    def open(self):
        root = TableRoot(self.store, PATH, self.env())
        self.table = Table(root, root.schemas.latest(), "d.t")

    def drawn(self):
        keys = self.rng.sample(range(8), self.rng.randrange(1, 4))
        texts = [f"{self.rng.randrange(100)}" for _ in keys]
        return pa.table({"p": pa.array([key % 2 for key in keys], pa.int32()), "k": keys, "v": texts}, schema=SCHEMA)

    # -- steps --------------------------------------------------------------------------------------------------------

    def write(self):
        self.table.write_arrow(self.drawn())

    def replace(self):
        self.table.write_arrow(self.drawn(), overwrite=self.rng.choice([{}, "dynamic"]))

    def delete(self):
        self.table.delete(f"k = {self.rng.randrange(8)}")

    def compact(self):
        self.table.compact(full=self.rng.random() < 0.5)

    def drop(self):
        with contextlib.suppress(NotFoundError):
            self.table.drop_partitions([{"p": self.rng.randrange(2)}])

    def tag(self):
        latest = self.table.snapshots()
        if latest:
            retain = self.rng.choice([None, timedelta(minutes=self.rng.randrange(1, 100))])
            name = f"t{self.rng.randrange(6)}"
            try:
                self.table.create_tag(name, self.rng.choice(latest).id, retain=retain)
            except AlreadyExistsError:
                self.table.delete_tag(name)

    def expire(self):
        self.rng.choice([self.table.expire_snapshots, self.table.expire_changelogs])(retain_min=1, retain_max=2)

    def expire_tags(self):
        self.table.expire_tags()

    def consume(self):
        latest = self.table.snapshot()
        if latest is not None:
            self.table._root.consumers.put(Consumer(f"c{self.rng.randrange(3)}", max(1, latest.id - self.rng.randrange(4))))

    def go_back(self):
        latest = self.table.snapshots()
        if latest:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", PaimonWarning)  # of consumers, which are numbers alone
                self.table.rollback_to(self.rng.choice(latest).id)
            self.loose = True

    def alter(self):
        options = drawn_options(self.rng)
        options.pop("tag.automatic-creation", None)
        self.table.alter(*(SetOption(name, text) for name, text in options.items() if not name.startswith("changelog.")))

    def branch(self):
        if "b" in self.table.branches():
            if self.rng.random() < 0.7:
                self.table.branch("b").write_arrow(self.drawn())
            else:
                self.table.delete_branch("b")
                self.loose = True
        elif self.table.snapshot() is not None:
            self.table.create_branch("b", self.rng.choice([None, self.table.snapshot().id]))

    def reopen(self):
        self.open()

    def sleep(self):
        self.clock.seconds += self.rng.choice([1, 60, 700, 3600, 9000])

    STEPS = {write: 8, replace: 1, delete: 2, compact: 2, drop: 1, tag: 3, expire: 1, expire_tags: 1, consume: 1, go_back: 1,
             alter: 1, branch: 2, reopen: 2, sleep: 5}  # fmt: skip

    # -- checks -------------------------------------------------------------------------------------------------------

    def step(self):
        choose = self.rng.choices(list(self.STEPS), list(self.STEPS.values()))[0]
        choose(self)
        self.check()

    def check(self):
        root = self.table._root
        for number in root.snapshots.ids():
            snapshot = root.snapshots.get(number)
            if snapshot.mark not in self.rows:
                self.rows[snapshot.mark] = self.shown(snapshot_id=number)
        for tag in root.tags.list():  # a commit may tag its first snapshot and let that one go before we look
            if tag.snapshot.mark not in self.rows:
                self.rows[tag.snapshot.mark] = self.shown(tag=tag.name)
        left = [(root.snapshots.get(number).mark, {"snapshot_id": number}) for number in root.snapshots.ids()]
        left += [(tag.snapshot.mark, {"tag": tag.name}) for tag in root.tags.list()]
        for mark, place in self.rng.sample(left, min(len(left), 3)):
            assert self.shown(**place) == self.rows[mark], place

    def check_all(self):
        root = self.table._root
        for number in root.snapshots.ids():
            assert self.shown(snapshot_id=number) == self.rows[root.snapshots.get(number).mark]
        for tag in root.tags.list():
            assert self.shown(tag=tag.name) == self.rows[tag.snapshot.mark], tag.name
        for number in root.changelogs.ids():
            self.table.changes(number - 1, number).to_arrow()
        if "b" in self.table.branches():
            branch = self.table.branch("b")
            for snapshot in branch.snapshots():
                branch.scan(snapshot_id=snapshot.id).to_arrow()
            for tag in branch.tags():
                branch.scan(tag=tag.name).to_arrow()
        if not self.loose:
            assert self.stored(PATH) <= self.reachable(), self.stored(PATH) - self.reachable()

    def shown(self, **place):
        return sorted(map(str, self.table.scan(**place).to_arrow().to_pylist()))

    def reachable(self):
        """Names of all files that something names."""
        root, names, snapshots = self.table._root, set(), []
        for one in (root, root.on_branch("b")):
            snapshots += [one.snapshots.get(number) for number in one.snapshots.ids()]
            snapshots += [tag.snapshot for tag in one.tags.list()]
        lasting = "changelog.num-retained.min" in self.table.options
        for snapshot in snapshots:
            if lasting:  # what a snapshot took away goes with its changelog
                manifests = root.manifests.read_list(snapshot.delta_manifest_list)
                names |= set(root.manifests.read_entries(manifests).names().to_pylist())
            names |= root.manifests.file_names(snapshot) | {snapshot.index_manifest}
            names |= self.listed(root, snapshot.base_manifest_list, snapshot.delta_manifest_list)
            names |= self.told(root, snapshot)
        for one in (root, root.on_branch("b")):
            for changelog in map(one.changelogs.find, one.changelogs.ids()):
                names |= self.told(root, changelog)
                names |= self.listed(root, changelog.base_manifest_list, changelog.delta_manifest_list)
                if changelog.changelog_manifest_list is None and "changelog-producer" not in self.table.options:
                    manifests = root.manifests.read_list(changelog.delta_manifest_list)
                    names |= set(root.manifests.read_entries(manifests).names().to_pylist())
        return names

    def listed(self, root, *lists):
        found = set()
        for one in lists:
            try:
                found |= {one, *(manifest.name for manifest in root.manifests.read_list(one))}
            except FileMissingError:  # of a changelog
                continue
        return found

    def told(self, root, snapshot):
        if snapshot.changelog_manifest_list is None:
            return set()
        try:
            manifests = root.manifests.read_list(snapshot.changelog_manifest_list)
        except FileMissingError:  # the changes of a tag or branch, which went with the snapshot
            return set()
        names = set(root.manifests.read_entries(manifests).names().to_pylist())
        return names | {snapshot.changelog_manifest_list, *(manifest.name for manifest in manifests)}

    def stored(self, directory):
        """Names of all data, index and manifest files."""
        names = set()
        for status in self.store.list(directory):
            if status.is_directory:
                names |= self.stored(status.path)
            elif directory.rpartition("/")[2].startswith(("bucket-", "manifest", "index")):
                names.add(status.name)
        return names


def live(kind, seed, steps):
    life = Life(kind, seed)
    with warnings.catch_warnings():
        warnings.simplefilter("error", PaimonWarning)
        for number in range(steps):
            try:
                life.step()
            except Exception as error:
                raise AssertionError(f"{kind}, seed {seed}, step {number}: {error!r}") from error
    life.check_all()


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_kept_keeps_its_rows_and_nothing_else_is_kept(kind):
    for seed in range(BOUNDED_LIVES):
        live(kind, seed, BOUNDED_STEPS)


@pytest.mark.full
@pytest.mark.parametrize("shard", range(SHARDS))
@pytest.mark.parametrize("kind", KINDS)
def test_long_lives(kind, shard):
    for seed in range(shard * FULL_LIVES, (shard + 1) * FULL_LIVES):
        live(kind, 1000 + seed, FULL_STEPS)
