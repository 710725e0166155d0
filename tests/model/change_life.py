"""A table with a life whose changes are followed: applied to what was there, they give what is there.

Every snapshot's changes are applied to a fold. What a changelog of lookups or full compactions says is taken at its
word: a row that goes was there as it is told, one that comes was not. Raw changes (input, or the files of an append) are
merged by a model of the engine. An overwrite tells no changes: a partition that was overwritten is taken up anew.
"""

from __future__ import annotations

import copy
from collections import Counter

import msgspec
from model import steps_writing
from model.row_model import Content
from model.table_life import Life, partition_of

from paimon_py.spec.snapshot import CommitKind

REMEMBERED = 30
ADDS = ("+I", "+U")
KIND = "_row_kind"


class Fold:
    """What changes make of rows. `told`: they are net changes, before and after; else the engine merges them."""

    def __init__(self, life):
        self.key = () if not life.mode.keyed else ("p", "k") if life.mode.parted else ("k",)
        self.told = told(life.mode)
        self.engine = Content(self.key, life.mode.engine, False)
        self.tells_equals = life.mode.options.get("changelog-producer.row-deduplicate") != "true"
        self.silent = tuple(life.mode.options.get("changelog-producer.row-deduplicate-ignore-fields", "").split(","))
        self.rows = {} if self.key else Counter()
        self.started_at = 0
        self.since = {}

    def copy(self):
        other = copy.copy(self)
        other.rows, other.since = self.rows.copy(), self.since.copy()
        return other

    def begin(self, rows, following):
        """Take up a whole table; `following`: the first snapshot that it does not hold."""
        self.started_at = following
        for row in rows:
            assert row.pop(KIND) == "+I"
            self._put(self.at(row), row) if self.key else self.rows.update([sealed(row)])

    def has_lost(self, life, partition, following):
        """Whether a partition was overwritten since it was taken up, before a snapshot."""
        since = self.since.get(partition, self.started_at)
        return any(since <= number < following for number in life.overwritten.get(partition, ()))

    def take(self, other, partition, following):
        """Take a partition up anew from another fold."""
        self.since[partition] = following
        self.replace(partition, other.rows_in(partition))

    def at(self, row):
        return tuple(row[name] for name in self.key)

    def seal(self, row):
        """A row as a value, without columns whose changes alone are not told."""
        return sealed(row, self.silent)

    def apply(self, rows):
        """Changes in their order, as dictionaries with `_row_kind`."""
        going = {}
        for change in rows:
            kind, row = change[KIND], {name: value for name, value in change.items() if name != KIND}
            if not self.key:
                assert kind == "+I", f"{kind} of an append table"
                self.rows[sealed(row)] += 1
            elif self.told:
                self._tell(kind, row, going)
            else:
                merged = self.engine.merged(self.rows.get(self.at(row)), kind, row)
                self._put(self.at(row), merged)
        assert not going, f"-U without +U: {going}"

    def _tell(self, kind, row, going):
        key = self.at(row)
        before = self.rows.get(key)
        if kind in ADDS:
            assert (key in going) == (kind == "+U"), f"{kind} of {row} after {going.get(key)}"
            assert before is None, f"{kind} of {row} over {before}"
            old = going.pop(key, None)
            if old is not None and not self.tells_equals:
                assert self.seal(old) != self.seal(row), f"{row} is told although nothing changed"
            self.rows[key] = row
            return
        assert before is not None, f"{kind} of {row}, which was not there"
        assert self.seal(before) == self.seal(row), f"{kind} of {row}, but {before} was there"
        del self.rows[key]
        if kind == "-U":
            going[key] = row

    def _put(self, key, row):
        if row is None:
            self.rows.pop(key, None)
        else:
            self.rows[key] = row

    def part(self, partition):
        """What is in a partition, to be compared."""
        if not self.key:
            return Counter({row: count for row, count in self.rows.items() if dict(row).get("p") == partition and count})
        return {key: self.seal(row) for key, row in self.rows.items() if row.get("p") == partition}

    def rows_in(self, partition):
        if not self.key:
            return [dict(row) for row in self.rows.elements() if dict(row).get("p") == partition]
        return [row for row in self.rows.values() if row.get("p") == partition]

    def partitions(self):
        return {dict(row).get("p") for row in (self.rows.values() if self.key else self.rows)}

    def replace(self, partition, rows):
        """Take up a partition anew."""
        if not self.key:
            self.rows = Counter({row: count for row, count in self.rows.items() if dict(row).get("p") != partition})
            self.rows.update(sealed(row) for row in rows)
            return
        self.rows = {key: row for key, row in self.rows.items() if row.get("p") != partition}
        self.rows.update((self.at(row), row) for row in rows)


def told(mode):
    """Whether changes come with what was there before."""
    return mode.options.get("changelog-producer", "none") in ("lookup", "full-compaction")


def sealed(row, without=()):
    """A row as a value; a column that is null is one that is not there, as before it was added."""
    return frozenset((name, value) for name, value in row.items() if value is not None and name not in without)


class Seen(msgspec.Struct):
    """A snapshot: what a scan finds, by partition, and which partitions its changes speak of in full."""

    rows: dict
    settled: frozenset


class ChangeLife(Life):
    """A table, its model, what its changes make of it, and streams that lag behind."""

    def __init__(self, mode, seed):
        super().__init__(mode, seed)
        self.fold = Fold(self)
        self.followed = 0
        self.doubtful = set()
        self.overwritten = {}
        self.states = {}
        self.followers = []
        self.followers_made = 0
        self.raw = Counter()
        self.is_raw = True

    def took(self, pairs):
        self.raw.update((kind, sealed(row)) for kind, row in pairs)
        was_raw = self.is_raw
        super().took(pairs)
        self.is_raw = was_raw

    def wrote(self, pairs, emptied=None):
        """An operation has written rows that nobody gave."""
        self.is_raw = False
        super().wrote(pairs, emptied)

    @property
    def producer(self):
        return self.mode.options.get("changelog-producer", "none")

    def check(self):
        super().check()
        table = self.opened()
        latest = table.snapshot()
        told = Counter()
        for number in range(self.followed + 1, (latest.id if latest else 0) + 1):
            told.update(self.follow(table, number))
        self.followed = latest.id if latest else 0
        if self.producer == "input" and self.is_raw and not self.mode.moves:
            assert told == self.raw, f"the input has {self.raw - told}, and not {told - self.raw}"
        self.raw, self.is_raw = Counter(), True

    def observe(self):
        """Changelog files are files of their snapshot."""
        for number in range(self.seen + 1, (self.files.snapshots.latest_id() or 0) + 1):
            told = self.files.snapshots.get(number).changelog_manifest_list
            if told is not None:
                found = self.files.manifests.read_entries(self.files.manifests.read_list(told)).entries()
                self.named.update(entry.file.name for entry in found)
        super().observe()

    def follow(self, table, number):
        """Apply the changes of a snapshot. Gives its changes."""
        snapshot = self.files.snapshots.get(number)
        touched = self.touched(snapshot)
        if snapshot.commit_kind is CommitKind.OVERWRITE:
            self.doubtful |= touched
            for partition in touched:
                self.overwritten.setdefault(partition, []).append(number)
        rows = self.changes(table, number - 1, number)
        sure = [row for row in rows if row.get("p") not in self.doubtful]
        self.fold.apply(sure)
        seen = self.states[number] = self.seen_at(table, snapshot)
        while len(self.states) > REMEMBERED:
            self.states.pop(next(iter(self.states)))
        for partition in seen.settled:
            if partition in self.doubtful:
                self.fold.replace(partition, seen.rows.get(partition, ()))
                self.doubtful.discard(partition)
            self.compare_part(self.fold, partition, seen, f"snapshot {number}, {snapshot.commit_kind.name}")
        return [(row[KIND], sealed(row, (KIND,))) for row in rows]

    def compare_part(self, fold, partition, seen, what):
        found, wanted = fold.part(partition), parts_of(fold, seen.rows.get(partition, ()))
        less = {key: row for key, row in wanted.items() if found.get(key) != row}
        more = {key: row for key, row in found.items() if wanted.get(key) != row}
        assert found == wanted, f"{what}: changes of {partition} lack {less} and have {more}"

    def changes(self, table, after, until, mode="auto"):
        """Rows of changes. A key that moves may be told of by several buckets, in any order: what goes comes first."""
        scan = table.changes(after, until, mode=mode)
        if not self.mode.moves:
            return scan.to_arrow().to_pylist()
        return self.in_order((split.bucket, scan.read(split)) for split in scan.splits())

    def in_order(self, readers):
        """Rows by (bucket, reader): of a key that several buckets tell of, what goes comes first."""
        parts = {}
        for bucket, reader in readers:
            for row in reader.read_all().to_pylist():
                parts.setdefault((row.get("p"), bucket), {}).setdefault(self.fold.at(row), []).append(row)
        stays = lambda rows: rows[-1][KIND] in ADDS  # noqa: E731
        told = [rows for keys in parts.values() for rows in keys.values()]
        return [row for rows in sorted(told, key=stays) for row in rows]

    def touched(self, snapshot):
        """Partitions of which a snapshot's delta speaks; all where deletion vectors may have taken rows away."""
        lists = self.files.manifests.read_list(snapshot.delta_manifest_list)
        found = {partition_of(self, entry.partition) for entry in self.files.manifests.read_entries(lists).entries()}
        return found | self.fold.partitions() if self.mode.marks and not self.mode.keyed else found

    def seen_at(self, table, snapshot):
        rows = {}
        for row in table.scan(snapshot_id=snapshot.id).to_arrow().to_pylist():
            rows.setdefault(row.get("p"), []).append(row)
        levels = {}
        for entry in self.files.manifests.live_entries(snapshot).entries():
            levels.setdefault(partition_of(self, entry.partition), set()).add(entry.file.level)
        for partition in (*rows, *self.fold.partitions()):
            levels.setdefault(partition, set())
        settled = frozenset(partition for partition, found in levels.items() if self.is_settled(found))
        return Seen(rows, settled)

    def is_settled(self, levels):
        """Whether what was told by now is all that a scan of files on these levels finds."""
        if self.producer == "full-compaction":
            return levels <= {int(self.options.get("num-levels", int(self.options["num-sorted-run.compaction-trigger"]) + 1)) - 1}
        return not (self.producer == "lookup" and 0 in levels) and not (self.mode.hides and 0 in levels)


def parts_of(fold, rows):
    """Rows that a scan found, to be compared with those of a fold."""
    if not fold.key:
        return Counter(sealed(row) for row in rows)
    return {fold.at(row): fold.seal(row) for row in rows}


# -- steps ---


def widen(life, rng):
    """Rows that first-row ignores may have any type."""
    if life.mode.engine != "first-row":
        steps_writing.widen(life, rng)


def differ(life, rng):
    """The net changes between two snapshots."""
    if not life.states:
        return
    one, other = sorted(rng.choices(list(life.states), k=2))
    table = life.opened()
    if not life.mode.keyed:
        bags = [Counter(sealed(row) for rows in life.states[end].rows.values() for row in rows) for end in (one, other)]
        found = Counter((row[KIND], sealed(row, (KIND,))) for row in life.changes(table, one, other, mode="diff"))
        went, came = ({row: count for (told, row), count in found.items() if told == kind} for kind in ("-D", "+I"))
        assert (went, came) == (bags[0] - bags[1], bags[1] - bags[0]), f"between {one} and {other}"
        return
    fold = Fold(life)
    fold.told, fold.key, fold.silent = False, life.key, ()
    fold.engine = Content(fold.key, "deduplicate", False)
    for partition, rows in life.states[one].rows.items():
        fold.replace(partition, rows)
    found = life.changes(table, one, other, mode="diff")
    keys = Counter(fold.at(row) for row in found)
    assert not keys or max(keys.values()) == 1, f"several changes of one key: {keys.most_common(1)}"
    for row in found:
        before = fold.rows.get(fold.at(row))
        after = {name: value for name, value in row.items() if name != KIND}
        if row[KIND] in ADDS:
            assert before is None or sealed(before) != sealed(after), f"{row} is told although nothing changed"
        else:
            assert before is not None, f"{row} goes and was not there"
    fold.apply(found)
    seen = life.states[other]
    for partition in {*seen.rows, *(row.get("p") for row in fold.rows.values())}:
        life.compare_part(fold, partition, seen, f"from {one} to {other}")
