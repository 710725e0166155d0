"""A table with a life of which Java is the second half: it commits, compacts, tags, expires and rolls back in between.

Meanwhile our streams, positions and consumers follow, our users number their commits, and branches of ours go on. A plain model says
what each snapshot holds, by its mark, and which numbers were committed up to it. Every stream is a fold, which is to be the state that
it has read; where it is refused, its history is gone.
"""

from __future__ import annotations

import random
import warnings
from collections import Counter
from datetime import timedelta

import pytest
from pair import Kind, Pair

from paimon_py import CommitConflictError, PaimonError, PaimonWarning, SnapshotExpiredError, Table, UsageError
from paimon_py.spec.snapshot import Base
from paimon_py.stream.position import parse_position

MAIN = "main"
COLUMNS = [["k", "INT NOT NULL"], ["v", "INT"]]
COMMON = {"write-only": "true", "manifest.merge-min-count": "3", "snapshot.num-retained.min": "500", "snapshot.num-retained.max": "1000"}
KINDS = {
    "keyed": Kind(COLUMNS, ["k"], options={**COMMON, "bucket": "1"}),
    "input": Kind(COLUMNS, ["k"], options={**COMMON, "bucket": "2", "changelog-producer": "input"}),
    "lookup": Kind(COLUMNS, ["k"], options={**COMMON, "bucket": "1", "changelog-producer": "lookup"}),
    "append": Kind(COLUMNS, options={**COMMON, "bucket": "-1"}),
}
USERS = ("u", "w")
WEIGHTS = {
    "write": 10, "compact": 3, "tag": 3, "untag": 1, "expire": 4, "roll_back": 2, "branch": 2, "forward": 1, "leave": 1,
    "open": 4, "follow": 6, "differ": 3, "clean": 1,
}  # fmt: skip


class Follower:
    """A stream with the rows that it has told.

    `read`: the mark of the last snapshot that had a step. `base`: the last one that it has passed.
    """

    def __init__(self, branch: str, stream, consumer: str | None) -> None:
        self.branch, self.stream, self.consumer = branch, stream, consumer
        self.rows: object = None
        self.read: str | None = None
        self.base: Base | None = None


class HistoryLife:
    """One life. `did`: how often each side did what. `is_vague`: Java has rolled back, so that numbers begin above all others."""

    def __init__(self, java, warehouse, kind: str, seed: int) -> None:
        self.rng = random.Random(f"histories {kind} {seed}")
        self.pair, self.kind, self.keyed = Pair(java, warehouse), kind, kind != "append"
        self.pair.create(KINDS[kind], self.rng.choice("oj"))
        self.held = [self.pair.table(), self.pair.table()]
        self.rows: dict[str, object] = {MAIN: self.nothing()}
        self.users: dict[str, dict[str, int]] = {MAIN: {}}
        self.states: dict[str, object] = {}
        self.numbers: dict[str, dict[str, int]] = {}
        self.parents: dict[str, str | None] = {}
        self.newest: dict[str, str | None] = {MAIN: None}
        self.begins: dict[str, str] = {}
        self.followers: list[Follower] = []
        self.is_vague = False
        self.of_java: set[str] = set()
        self.highest: dict[str, int] = {}
        self.made = 0
        self.did: Counter = Counter()

    def play(self, steps: int) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PaimonWarning)  # of consumers that have read what is rolled back
            for _ in range(steps):
                name = self.rng.choices(list(WEIGHTS), list(WEIGHTS.values()))[0]
                by = self.rng.choice("oj")
                self.did[name, by] += 1
                getattr(self, name)(self.rng.choice([MAIN, *self.rows]), by)
                self.check()

    # -- the model ----------------------------------------------------------------------------------------------------

    def nothing(self) -> object:
        return {} if self.keyed else Counter()

    def on(self, branch: str) -> Table:
        """A table object, often one that has been held for long."""
        if self.rng.random() < 0.3:
            self.held[self.rng.randrange(2)] = self.pair.table()
        table = self.rng.choice(self.held)
        return table if branch == MAIN else table.branch(branch)

    def java(self, op: str, branch: str = MAIN, **fields):
        return self.pair.step(op, **fields, **({} if branch == MAIN else {"useBranch": branch}))

    def note(self, branch: str) -> None:
        """Note what the snapshots hold that came just now."""
        for snapshot in self.pair.table().branch(branch).snapshots():
            mark = snapshot.value.mark
            if mark not in self.states:
                self.states[mark], self.numbers[mark] = self.rows[branch].copy(), dict(self.users[branch])
                self.parents[mark] = self.newest[branch]
                self.newest[branch] = mark

    def history(self, branch: str) -> set[str]:
        """The marks of a branch's snapshots, expired ones included."""
        found, mark = set(), self.newest[branch]
        while mark is not None:
            found.add(mark)
            mark = self.parents[mark]
        return found

    def go_back(self, branch: str, mark: str) -> None:
        self.newest[branch] = mark
        self.rows[branch], self.users[branch] = self.states[mark].copy(), dict(self.numbers[mark])

    def read(self, rows: list[dict]) -> object:
        if not self.keyed:
            return Counter((row["k"], row["v"]) for row in rows)
        found = {row["k"]: row["v"] for row in rows}
        assert len(found) == len(rows), "a key twice"
        return found

    def check(self) -> None:
        """Every snapshot and tag that is left has its rows, every user its number; Java reads the newest state as we do."""
        for branch in self.rows:
            table = self.pair.table().branch(branch)
            for snapshot in table.snapshots():
                assert self.read(table.scan(snapshot_id=snapshot.id).to_arrow().to_pylist()) == self.states[snapshot.value.mark]
            for tag in table.tags():
                assert self.read(table.scan(tag=tag.name).to_arrow().to_pylist()) == self.states[tag.value.snapshot.mark]
            for user in USERS if branch not in self.of_java else ():
                number, found = self.users[branch].get(user), table.committed(user)
                assert found == number or (found is None and not self.must_know(table, user)), (branch, user, found, number)
        assert self.read(self.java("read")) == self.rows[MAIN]

    def must_know(self, table: Table, user: str) -> bool:
        """Whether a snapshot that is left says what a user has committed: if only those of Java are left, files may not show it."""
        for snapshot in reversed(table.snapshots()):
            users, value = snapshot.value.users, snapshot.value
            if users is not None:
                return user in users.commits or not users.unknown_until
            if value.commit_user == user and value.is_numbered:
                return True
        return int(table.snapshots()[0].id) == 1 if table.snapshots() else True

    # -- steps --------------------------------------------------------------------------------------------------------

    def write(self, branch: str, by: str) -> None:
        rows, kinds = [], []
        for key in self.rng.sample(range(9), self.rng.randrange(1, 4)):
            self.made += 1
            rows.append({"k": key, "v": self.made})
            kinds.append("-D" if self.keyed and self.rng.random() < 0.25 else "+I")
        if self.rng.random() < 0.5 and branch not in self.of_java:
            return self.numbered(branch, by, rows, kinds)
        if by == "o":
            self.on(branch).write_arrow(self.ours(rows, kinds))
        else:
            self.java("write", branch, rows=self.theirs(rows, kinds))
        return self.wrote(branch, rows, kinds)

    def numbered(self, branch: str, by: str, rows: list[dict], kinds: list[str], user: str | None = None) -> None:
        """Commit under the next number of a user, and again under the same and a lower one.

        What Java numbers is followed by a number of ours: Java's expiry would forget its own.
        """
        user = user or self.rng.choice(USERS)
        last = self.users[branch].get(user, 0)
        is_vague = self.is_vague or not self.must_know(self.pair.table().branch(branch), user)
        number = max(last, self.highest.get(user, 0) if is_vague else 0) + self.rng.randrange(1, 4)
        if by == "j":
            self.java("write", branch, rows=self.theirs(rows, kinds), user=user, id=number)
        else:
            table = self.on(branch)
            try:
                assert table.filter_committed(user, [last, number]) == ([number] if last else [last, number])
            except CommitConflictError:
                assert not self.must_know(table, user)
                rows_again = self.ours([{"k": 1, "v": 0}], ["+I"])
                with pytest.raises(CommitConflictError, match="cannot be determined"):
                    table.write_arrow(rows_again, user=user, identifier=last)
            assert not table.write_arrow(self.ours(rows, kinds), user=user, identifier=number).already_committed
        self.users[branch][user] = number
        self.highest[user] = max(self.highest.get(user, 0), number)
        self.wrote(branch, rows, kinds)
        if by == "j":
            assert self.on(branch).committed(user) == number
            return self.numbered(branch, "o", rows, kinds, user)
        assert self.on(branch).write_arrow(self.ours(rows, kinds), user=user, identifier=number).already_committed
        if number - last > 1:
            with pytest.raises(UsageError, match="numbers of a user must grow"):
                self.on(branch).write_arrow(self.ours(rows, kinds), user=user, identifier=number - 1)
        return None

    def ours(self, rows: list[dict], kinds: list[str]) -> list[dict]:
        return [{**row, "_row_kind": kind} for row, kind in zip(rows, kinds, strict=True)] if self.keyed else rows

    def theirs(self, rows: list[dict], kinds: list[str]) -> list[dict]:
        return [{**row, "_kind": kind} for row, kind in zip(rows, kinds, strict=True)]

    def wrote(self, branch: str, rows: list[dict], kinds: list[str]) -> None:
        state = self.rows[branch] = self.rows[branch].copy()
        for row, kind in zip(rows, kinds, strict=True):
            if not self.keyed:
                state[row["k"], row["v"]] += 1
            elif kind == "-D":
                state.pop(row["k"], None)
            else:
                state[row["k"]] = row["v"]
        self.note(branch)

    def compact(self, branch: str, by: str) -> None:
        if by == "o":
            self.on(branch).compact(full=True)
        elif self.pair.table().branch(branch).snapshot() is not None:
            self.java("compact", branch, full=True, options={"write-only": "false"})
        self.note(branch)

    def tag(self, branch: str, by: str) -> None:
        snapshots = self.pair.table().branch(branch).snapshots()
        if not snapshots:
            return
        self.made += 1
        name, number = f"t{self.made}", int(self.rng.choice(snapshots).id)
        if by == "o":
            self.on(branch).create_tag(name, number)
        else:
            self.java("tag", branch, name=name, snapshot=number)

    def untag(self, branch: str, by: str) -> None:
        tags = [tag.name for tag in self.pair.table().branch(branch).tags() if tag.name not in self.begins.values()]
        if tags and by == "o":
            self.on(branch).delete_tag(self.rng.choice(tags))
        elif tags:
            self.java("tag", branch, name=self.rng.choice(tags), delete=True)

    def expire(self, branch: str, by: str) -> None:
        """Let old snapshots go. What consumers have not read stays, whoever expires; Java does not ask other branches."""
        table = self.pair.table().branch(branch)
        if table.snapshot() is None:
            return
        keep = self.rng.randrange(1, 4)
        if by == "o":
            self.on(branch).expire_snapshots(retain_min=1, retain_max=keep, older_than=timedelta(milliseconds=1))
        elif branch == MAIN:
            self.java("expire", min=1, max=keep, retainMillis=1)
        oldest = table.snapshots()[0].id
        for consumer in table.consumers():
            assert consumer.next_snapshot_id >= oldest, (consumer, oldest)

    def roll_back(self, branch: str, by: str) -> None:
        """Go back. After Java's, streams look at once: if Java then expires all that they have read, nothing tells them later.

        Branches whose tags go are left, since Java's expiry of main asks for tags alone.
        """
        table = self.pair.table().branch(branch)
        targets = [(int(one.id), one.value.mark) for one in table.snapshots()] + [(tag.name, tag.value.snapshot.mark) for tag in table.tags()]
        if not targets or (branch != MAIN and by == "j"):
            return
        target, mark = self.rng.choice(targets)
        if by == "o":
            self.on(branch).rollback_to(target)
        else:
            self.java("rollback", **({"snapshot": target} if isinstance(target, int) else {"tag": target}))
        assert self.pair.table().branch(branch).snapshot().value.mark == mark
        self.go_back(branch, mark)
        left = {tag.name for tag in self.pair.table().tags()}
        for other in [name for name, tag in self.begins.items() if tag not in left]:
            self.leave(other, "o")
        if by == "j":
            self.is_vague = True
            self.follow(branch, by)

    def forgotten(self, branch: str) -> None:
        """Numbers of which only snapshots told that have expired are refused, never committed twice; larger ones go on."""
        for user in USERS:
            number = self.users[branch].get(user)
            if number is None or self.on(branch).committed(user) is not None:
                continue
            rows = [{"k": 1, "v": 0}]
            with pytest.raises(PaimonError, match="nothing was committed"):
                self.on(branch).write_arrow(self.ours(rows, ["+I"]), user=user, identifier=number)
            self.users[branch][user] = number = self.highest[user] + 1
            assert not self.on(branch).write_arrow(self.ours(rows, ["+I"]), user=user, identifier=number).already_committed
            self.highest[user] = number
            self.wrote(branch, rows, ["+I"])

    def branch(self, branch: str, by: str) -> None:
        """A branch begins at a tag, which stays as long: Java's expiry asks tags alone.

        Java 1.x makes branches of tags only as long as their snapshots exist.
        """
        tags = self.pair.table().tags()
        if len(self.rows) > 2 or not tags or branch != MAIN:
            return
        self.made += 1
        name, tag = f"b{self.made}", self.rng.choice(tags)
        has_expired = tag.snapshot_id not in [one.id for one in self.pair.table().snapshots()]
        if has_expired and self.pair.java.version < "2":
            by = "o"
        if by == "o":
            self.on(MAIN).create_branch(name, from_=tag.name)
        else:
            self.java("branch", action="create", name=name, tag=tag.name)
            self.of_java.add(name)
        self.begins[name] = tag.name
        mark = self.newest[name] = tag.value.snapshot.mark
        self.rows[name], self.users[name] = self.states[mark].copy(), dict(self.numbers[mark])
        if by == "o":
            self.forgotten(name)

    def forward(self, branch: str, by: str) -> None:
        if branch == MAIN or branch in self.of_java:
            return
        self.on(MAIN).fast_forward(branch, discard=True)
        self.newest[MAIN], self.rows[MAIN], self.users[MAIN] = self.newest[branch], self.rows[branch].copy(), dict(self.users[branch])
        self.held = [self.pair.table(), self.pair.table()]
        for other in list(self.begins):  # Java's expiry would take their files, and tags may be gone
            self.leave(other, by)
        for consumer in self.pair.table().consumers():
            self.pair.table().delete_consumer(consumer.name)
        self.followers = [one for one in self.followers if one.branch != MAIN]

    def leave(self, branch: str, by: str) -> None:
        if branch == MAIN:
            return
        if by == "o":
            self.on(MAIN).delete_branch(branch)
        else:
            self.java("branch", action="delete", name=branch)
        for kept in (self.rows, self.users, self.newest, self.begins):
            del kept[branch]
        self.followers = [one for one in self.followers if one.branch != branch]

    # -- readers ------------------------------------------------------------------------------------------------------

    def open(self, branch: str, by: str) -> None:
        """Begin to follow, as a consumer or without one."""
        consumer = self.rng.choice([None, "c", "d"])
        table = self.on(branch)
        if any((one.branch, one.consumer) == (branch, consumer) for one in self.followers) or table.snapshot() is None:
            return
        if any(one.name == consumer for one in table.consumers()):
            table.delete_consumer(consumer)
        self.told_all(branch, by)
        self.followers.append(Follower(branch, table.stream(consumer_id=consumer), consumer))

    def told_all(self, branch: str, by: str) -> None:
        """Let a compaction tell what only compactions tell."""
        if self.kind == "lookup":
            self.compact(branch, by)

    def follow(self, branch: str, by: str) -> None:
        self.told_all(branch, by)
        for follower in [one for one in self.followers if one.branch == branch]:
            try:
                self.read_on(follower)
            except PaimonError as error:
                self.refused(follower, error)
                self.followers.remove(follower)
                if follower.consumer is not None and any(one.name == follower.consumer for one in self.on(branch).consumers()):
                    self.on(branch).delete_consumer(follower.consumer)

    def read_on(self, follower: Follower) -> None:
        """Read to the end, now and then with a new stream that goes on at the position or the consumer."""
        table = self.on(follower.branch)
        if follower.read is not None and self.rng.random() < 0.4:
            named = {"consumer_id": follower.consumer} if follower.consumer else {"from_": follower.stream.position}
            follower.stream = table.stream(**named)
        for step in iter(follower.stream.poll, None):
            assert follower.read is None or follower.read in self.history(follower.branch), "it reads on in another history"
            rows = step.to_arrow().to_pylist()
            follower.rows = self.read(rows) if step.is_full else self.applied(follower.rows, rows)
            follower.read = table.snapshot(step.snapshot_id).value.mark
            if self.kind != "lookup":
                assert follower.rows == self.states[follower.read], step
            if follower.consumer is not None:
                step.acknowledge()
        follower.base = parse_position(follower.stream.position).base
        assert follower.rows == self.rows[follower.branch]

    def applied(self, state, rows: list[dict]) -> object:
        state = state.copy()
        for row in rows:
            if not self.keyed:
                state[row["k"], row["v"]] += 1
            elif row["_row_kind"] in ("-D", "-U"):
                assert self.kind != "lookup" or state[row["k"]] == row["v"], row
                state.pop(row["k"], None)
            else:
                state[row["k"]] = row["v"]
        return state

    def refused(self, follower: Follower, error: PaimonError) -> None:
        """A stream is refused where its history was rolled back, or what it would read next has expired."""
        table = self.pair.table().branch(follower.branch)
        ids = [snapshot.id for snapshot in table.snapshots()]
        base, position = follower.base, follower.stream.position
        base = parse_position(position).base if position else base
        is_cut = base is not None and base.mark not in self.history(follower.branch)
        has_expired = isinstance(error, SnapshotExpiredError) and base is not None and base.id + 1 < ids[0]
        assert is_cut or (has_expired and follower.consumer is None), (follower.branch, follower.consumer, base, ids, error)

    def differ(self, branch: str, by: str) -> None:
        """The difference of two states of one history makes one of the other."""
        table = self.on(branch)
        ends = [(int(one.id), int(one.id), one.value.mark) for one in table.snapshots()]
        ends += [(tag.value.snapshot.id, tag.name, tag.value.snapshot.mark) for tag in table.tags()]
        if len(ends) < 2:
            return
        (_, start, before), (_, end, after) = sorted(self.rng.sample(ends, 2), key=lambda one: one[0])
        state = self.states[before].copy()
        for row in table.changes(start, end, mode="diff").to_arrow().to_pylist():
            if not self.keyed:
                state[row["k"], row["v"]] += 1 if row["_row_kind"] == "+I" else -1
            elif row["_row_kind"] == "-D":
                assert state.pop(row["k"]) == row["v"]
            else:
                assert (row["_row_kind"] == "+I") == (row["k"] not in state)
                state[row["k"]] = row["v"]
        assert (state if self.keyed else +state) == self.states[after]

    def clean(self, branch: str, by: str) -> None:
        """Nothing that is needed goes: all files are young. Our doctor finds nothing wrong."""
        self.on(MAIN).remove_orphans(dry_run=False)
        codes = {finding.code for finding in self.pair.table().doctor()}
        assert not codes & {"missing-files", "damaged-files", "history-has-a-gap", "history-has-a-seam", "history-is-cut"}, codes
