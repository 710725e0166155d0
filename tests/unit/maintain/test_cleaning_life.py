"""A life of writers, tags, branches, rollbacks, expiry and cleaning on a moving clock, against what must be left."""

from __future__ import annotations

import contextlib
import random
from datetime import timedelta

import pytest
from unit.maintain.test_remove_orphans import PATH, World, rows

from paimon_py import PaimonError
from paimon_py.env import Env, SerialPool
from paimon_py.maintain.cleanup.references import branch_roots
from paimon_py.metadata.changelogs import Changelogs
from paimon_py.metadata.root import TableRoot
from paimon_py.metadata.snapshots import Snapshots
from paimon_py.metadata.tags import Tags
from paimon_py.storage.store import FileMissingError
from paimon_py.table import Table

HOUR = 3_600_000
MODES = {
    "keyed": {"bucket": "1"},
    "vectors": {"bucket": "1", "deletion-vectors.enabled": "true"},
    "dynamic": {"bucket": "-1"},
    "changelog": {"bucket": "1", "changelog-producer": "input", "changelog.num-retained.min": "6"},
    "lookup": {"bucket": "1", "changelog-producer": "lookup", "changelog.num-retained.max": "9"},
    "longer": {"bucket": "1", "changelog.num-retained.min": "5", "write-only": "true"},
}


def named(root):
    """All names that the states of a table name, gathered one by one."""
    names = set()

    def quietly(read, *given):
        with contextlib.suppress(FileMissingError):
            return read(*given)
        return ()

    for home in branch_roots(root):
        snapshots, changelogs = Snapshots(root.store, home.path), Changelogs(root.store, home.path)
        states = [snapshots.get(number) for number in snapshots.ids()]
        states += [changelogs.find(number) for number in changelogs.ids()]
        states += [tag.snapshot for tag in Tags(root.store, home.path).list()]
        for state in states:
            names |= {state.statistics, state.index_manifest}
            names |= {entry.name for entry in quietly(root.manifests.read_index, state.index_manifest or "none")}
            for one in (state.base_manifest_list, state.delta_manifest_list, state.changelog_manifest_list or "none"):
                names.add(one)
                for manifest in quietly(root.manifests.read_list, one):
                    names.add(manifest.name)
                    for entry in (found.entries() if (found := quietly(root.manifests.read_entries, [manifest])) != () else ()):
                        names |= {entry.file.name, *entry.file.extra_files}
    return names


class Life:
    def __init__(self, mode, seed):
        self.rng = random.Random(f"{mode}{seed}")
        self.world = World(**MODES[mode])
        self.held = []
        self.cleaned = 0

    def opened(self, branch="main"):
        root = TableRoot(self.world.store, PATH, Env(self.world.clock, None, SerialPool()))
        table = Table(root, root.schemas.latest(), "d.t")
        return table if branch == "main" else table.branch(branch)

    def any(self):
        table = self.opened()
        return self.opened(self.rng.choice(["main", "main", *table.branches()]))

    def rows_of_states(self):
        """The rows of every state, and changes that are kept."""
        found = {}
        for name in ("main", *self.opened().branches()):
            table = self.opened(name)
            for snapshot in table.snapshots():
                found[name, snapshot.id] = contents(table.scan(snapshot_id=snapshot.id))
            for tag in table.tags():
                found[name, tag.name] = contents(table.scan(tag=tag.name))
            kept = table._root.changelogs.ids()
            if kept:
                found[name, "changes"] = changes(table, kept)
        return found

    def step(self):
        rng, table = self.rng, self.any()
        what = rng.choice(["write"] * 6 + ["hold", "commit", "drop", "compact", "tag", "untag", "branch", "unbranch", "forward",
                                           "rollback", "expire", "expire", "changelogs", "analyze", "wait", "wait", "clean"])  # fmt: skip
        getattr(self, what)(table, rng)
        self.world.clock.start += rng.randrange(2 * HOUR)

    def write(self, table, rng):
        data = rows(*rng.sample(range(12), rng.randrange(1, 6)), v=str(rng.random()))
        table.write_arrow(data, overwrite=rng.choice([None, None, None, {}, "dynamic"]))

    def hold(self, table, rng):
        """A writer that has not committed yet; its files are young."""
        with table.writer() as writer:
            writer.write_arrow(rows(*rng.sample(range(12), 2), v="held"))
            self.held.append((writer.changes(), table._root.branch, self.world.clock.millis()))

    def commit(self, table, rng):
        while self.held:
            changes, branch, since = self.held.pop()
            if branch in ("main", *self.opened().branches()) and self.world.clock.millis() - since < 24 * HOUR:
                with contextlib.suppress(PaimonError):
                    self.opened(branch).commit(changes)

    def drop(self, table, rng):
        """A writer that dies."""
        self.held.clear()

    def compact(self, table, rng):
        table.compact(full=rng.random() < 0.5)

    def tag(self, table, rng):
        ids = [snapshot.id for snapshot in table.snapshots()]
        name = f"t{rng.randrange(6)}"
        if ids and name not in [tag.name for tag in table.tags()]:
            table.create_tag(name, snapshot_id=rng.choice(ids))

    def untag(self, table, rng):
        for tag in table.tags()[:1]:
            table.delete_tag(tag.name)

    def branch(self, table, rng):
        table, name = self.opened(), f"b{rng.randrange(3)}"
        ids = [snapshot.id for snapshot in table.snapshots()]
        if name not in table.branches():
            table.create_branch(name, from_=rng.choice([None, *ids, *(tag.name for tag in table.tags())]))

    def unbranch(self, table, rng):
        for name in self.opened().branches()[:1]:
            self.opened().delete_branch(name)

    def forward(self, table, rng):
        for name in self.opened().branches()[:1]:
            if self.opened(name).snapshots():
                self.opened().fast_forward(name, discard=True)

    def rollback(self, table, rng):
        ids = [snapshot.id for snapshot in table.snapshots()]
        if ids:
            table.rollback_to(rng.choice(ids[-3:]))

    def expire(self, table, rng):
        least = rng.randrange(1, 5)
        table.expire_snapshots(retain_min=least, retain_max=least + 2, older_than=timedelta(milliseconds=-1))

    def changelogs(self, table, rng):
        table.expire_changelogs(retain_min=1, retain_max=4, older_than=timedelta(milliseconds=-1))

    def analyze(self, table, rng):
        table.analyze()

    def wait(self, table, rng):
        self.world.clock.start += rng.randrange(40) * HOUR

    def clean(self, table, rng):
        before = self.rows_of_states()
        hours = rng.choice([24, 24, 48])
        done = table.remove_orphans(dry_run=False, older_than=None if hours == 24 else timedelta(hours=hours))
        assert self.rows_of_states() == before
        left, root = named(self.opened()._root), self.opened()._root
        limit = self.world.clock.millis() - hours * HOUR
        for path in self.world.files(PATH):
            directory, _, name = path.rpartition("/")
            if "/bucket-" in path or directory.endswith(("/manifest", "/index", "/statistics")):
                assert name in left or root.store.stat(path).modified_millis >= limit, path
        self.cleaned += done.files


def changes(table, kept):
    """How many change rows are kept; of a state made of a tag the changes may have expired."""
    try:
        return table.changes(kept[0] - 1, kept[-1]).to_arrow().num_rows
    except PaimonError as error:
        return type(error)


def contents(scan):
    return sorted(map(str, scan.to_arrow().to_pylist()))


def live(mode, seed, steps):
    life = Life(mode, seed)
    for _ in range(steps):
        life.step()
    life.world.pass_days(3)
    life.clean(life.opened(), life.rng)
    return life.cleaned


@pytest.mark.parametrize("mode", MODES)
def test_every_state_reads_its_rows_after_cleaning(mode):
    assert live(mode, 1, 30) > 0


@pytest.mark.full
@pytest.mark.parametrize("shard", range(8))
def test_many_lives(shard):
    for seed in range(2 + shard * 4, 6 + shard * 4):
        for mode in MODES:
            live(mode, seed, 80)
