"""What must hold after a run of writers and care."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from simulation.contents import Broken, Files, folded, snapshot_of, tag_of
from simulation.kinds import KINDS, NAME, PATH, rows
from simulation.world import Clock, Ids, below

from paimon_py import PaimonError, Table
from paimon_py.env import Env, SerialPool
from paimon_py.errors import BranchNotFoundError, CorruptionError, StorageError
from paimon_py.metadata.cuts import FAST_FORWARD
from paimon_py.metadata.root import TableRoot
from paimon_py.spec.snapshot import Base, CommitKind

CUTS = ("rollback", "fast_forward", "fast_forward discard")
OVERTAKEN = "ended in the meantime: this call stops. Call it again"
"""What a cut says if the one that it took over ended at the same call: nobody but its user finishes it."""
TAKEN_OVER = "If the other one does not complete the work"


class Taking(NamedTuple):
    """What a call does that takes rows away: those for which `goes` is true."""

    goes: Callable[[tuple], bool]


class Published(NamedTuple):
    """A snapshot that was published on a branch, once, the rows that it holds, and the files that it names."""

    branch: str
    snapshot: object
    call: object
    rows: frozenset
    named: frozenset

    @property
    def base(self):
        return Base.of(self.snapshot)


class Passing(Clock):
    """The clock of a run, which goes on whenever somebody looks at it."""

    def __init__(self, clock):
        self._clock = clock

    @property
    def seconds(self):
        return self._clock.seconds

    def elapsed(self):
        self._clock.seconds += 0.001
        return self._clock.seconds

    def sleep(self, seconds):
        self._clock.seconds += seconds


class Judge:
    """Looks at a run that has ended."""

    def __init__(self, world, before, kind):
        self.world = world
        self.keyed = bool(KINDS[kind].key)
        self.kind = kind
        self.files = Files({path.rsplit("/", 1)[1]: data for path, data in before.items()})
        self.by_base = {}
        self.there = {}
        self.cut = []
        self.finished = None
        self.wrong = []
        self.names = 0
        self.clock = Passing(world.clock)
        for path, data in sorted(before.items(), key=lambda item: (len(item[0]), item[0])):
            if is_snapshot(path):
                self._publish(path, data, None, None)
            elif is_tag(path):
                tagged = tag_of(data)
                self.by_base[Base.of(tagged)] = Published(branch_of(path), tagged, None, *self._held(tagged))

    def judge(self):
        try:
            for effect in self.world.journal:
                self._follow(effect)
            self._check_calls()
            if not self.wrong:
                self._check_table()
        except Broken as error:
            self.wrong.append(str(error))
        return self.wrong

    # -- the journal --------------------------------------------------------------------------------------------------

    def _follow(self, effect):
        if effect.verb in ("put", "put_new"):
            self.files.data[effect.path.rsplit("/", 1)[1]] = effect.data
            if is_snapshot(effect.path):
                self._publish(effect.path, effect.data, effect.call, effect)
        elif effect.verb == "rename":
            source, target = effect.path + "/", effect.data.decode() + "/"
            self.there = {
                target + path.removeprefix(source) if path.startswith(source) else path: one
                for path, one in self.there.items()
            }
        elif effect.verb == "delete" and is_snapshot(effect.path):
            gone = self.there.pop(effect.path, None)
            if gone is not None and effect.call.what in CUTS:
                self.cut.append((gone, effect.call))

    def _publish(self, path, data, call, effect):
        snapshot, branch = snapshot_of(data), branch_of(path)
        base = Base.of(snapshot)
        known = self.by_base.get(base)
        if known is None:
            known = self.by_base[base] = Published(branch, snapshot, call, *self._held(snapshot))
            if effect is not None:
                self._check_published(known)
        over = self.there.get(path)
        if over is not None and over.base != base and call is not None and call.what in CUTS:
            self.cut.append((over, call))
        elif over is not None and over.base != base:
            raise Broken(f"{call} put snapshot {snapshot.id} over that of {over.call}")
        self.there[path] = known

    def _held(self, snapshot):
        """The rows and the names of the files of a snapshot."""
        entries = self.files.entries(snapshot.base_manifest_list) + self.files.entries(snapshot.delta_manifest_list)
        live = folded(entries)
        found = self.files.rows(self.kind, self.keyed, snapshot, live)
        values = list(found.values()) if self.keyed else list(found.elements())
        if len(values) != len(set(values)):
            raise Broken(f"snapshot {snapshot.id} has rows twice: {sorted(values)}")
        return frozenset(values), frozenset(self.files.named(snapshot, live))

    def _check_published(self, one):
        """A snapshot holds what its parent holds, and what its call wrote."""
        snapshot, call = one.snapshot, one.call
        if call.what in CUTS:
            raise Broken(f"{call} published snapshot {snapshot.id}, which nobody committed")
        parent = self.by_base.get(snapshot.parent) if snapshot.id > 1 else None
        if snapshot.id > 1 and parent is None:
            raise Broken(f"{call} published snapshot {snapshot.id} on a parent that never was: {snapshot.parent}")
        before = parent.rows if parent else frozenset()
        added = frozenset()
        if isinstance(call.deed, Taking) and snapshot.commit_kind in (CommitKind.APPEND, CommitKind.OVERWRITE):
            before = frozenset(row for row in before if not call.deed.goes(row))
        elif call.deed and snapshot.commit_kind is CommitKind.APPEND:
            added = frozenset(call.deed)
        if one.rows != before | added:
            raise Broken(f"{call} published snapshot {snapshot.id} with {changed(before | added, one.rows)}")
        if added & before:
            raise Broken(f"{call} applied {sorted(added)} twice")

    # -- the calls ----------------------------------------------------------------------------------------------------

    def _check_calls(self):
        for call in self.world.calls:
            if call.end == "bug":
                self.wrong.append(f"{call} raised {call.error!r}")
            is_damage = isinstance(call.error, (CorruptionError, StorageError)) and "only partly" not in str(call.error)
            if call.end == "failed" and not call.faulty and is_damage:
                self.wrong.append(f"{call} met no fault and raised {call.error!r}")

    def chain(self, snapshot):
        """The bases of a snapshot and of all that it comes from."""
        found = []
        while snapshot is not None:
            found.append(Base.of(snapshot))
            parent = self.by_base.get(snapshot.parent) if snapshot.id > 1 else None
            snapshot = parent.snapshot if parent else None
        return found

    # -- the table ----------------------------------------------------------------------------------------------------

    def table(self, branch=None):
        self.names += 1
        env = Env(self.clock, Ids(f"reader{self.names}"), SerialPool())
        root = TableRoot(self.world.store, PATH, env)
        table = Table(root, root.schemas.latest(), NAME)
        return table if branch is None else table.branch(branch)

    def _check_table(self):
        step = "afterwards"
        try:
            self._finish_cut()
            step = "reading"
            self._read_all()
            self._check_acknowledged()
            step = "consumers"
            self._check_consumers()
            step = "expiring"
            self._care()
            step = "reading after care"
            self._read_all()
            step = "writing"
            self._write()
        except PaimonError as error:
            self.wrong.append(f"{step}: {error!r}")

    def _finish_cut(self):
        table = self.table()
        cut = table._root.cuts.find()
        if cut is None:
            self._repair()
            return
        if not any(is_unfinished(call) for call in self.world.calls):
            self.wrong.append("a cut is left, and no call died or met a fault")
        self.finished = cut
        there = [one for one in self.there.values() if not one.branch]
        try:
            if cut.verb == FAST_FORWARD:
                table.fast_forward(cut.branch, discard=True)
            else:
                table.rollback_to(cut.snapshots[-1].id)
        except BranchNotFoundError:
            table.rollback_to(cut.snapshots[-1].id)
        left = {Base.of(one.value) for one in table.snapshots()}
        self.cut += [(one, None) for one in there if one.base not in left]

    def _repair(self):
        """What another cut ended at the very call at which one took it over says so, and may leave a gap."""
        overtaken = [call for call in self.world.calls if call.what in CUTS and OVERTAKEN in str(call.error)]
        for call in overtaken:
            call.end = "unknown"
        latest, ids = self.table().snapshot(), self.table()._root.snapshots.ids()
        if overtaken and list(range(ids[0], ids[-1] + 1)) != ids:
            self.table().rollback_to(latest.id)

    def _read_all(self):
        table = self.table()
        states = []
        for name in ("", *table.branches()):
            root = (table.branch(name) if name else table)._root
            states += [(name, {"snapshot_id": number}, root.snapshots.get(number)) for number in root.snapshots.ids()]
            states += [(name, {"tag": tag.name}, tag.snapshot) for tag in root.tags.list()]
        stored = {path.rsplit("/", 1)[1] for path in below(self.world.store, PATH)}
        read = dict.fromkeys(name for name, _, _ in states)
        for name, how, snapshot in states:
            known = self.by_base.get(Base.of(snapshot))
            if known is None:
                self.wrong.append(f"snapshot {snapshot.id} was never published")
            elif missing := known.named - stored:
                self.wrong.append(f"{name or 'main'} {how} names {sorted(missing)}, which are gone")
            elif "snapshot_id" in how and not self._hidden(snapshot, table):
                read[name] = how, known
        for name, found in read.items():
            if found is not None and self.read(self.table(name or None), **found[0]) != found[1].rows:
                self.wrong.append(f"{name or 'main'} {found[0]} does not read as {sorted(found[1].rows)}")

    def _hidden(self, snapshot, table):
        return snapshot.schema_id != table.schema.id and "vectors" in self.kind

    def read(self, table, **how):
        found = table.scan(**how, options={"deletion-vectors.merge-on-read": "true"}).to_arrow().to_pydict()
        values = list(zip(found["p"], found["k"], found["v"]))
        if len(values) != len(set(values)):
            raise Broken(f"{how} reads rows twice: {sorted(values)}")
        return frozenset(values)

    def _check_acknowledged(self):
        """What was acknowledged on main is in the table, unless a cut took it that says so and was allowed to."""
        chain = self._chain_of(self.table())
        for call in self.world.calls:
            if call.deed is None or call.end != "done" or call.what.strip() not in ("write", "numbered"):
                continue
            if self._is_in(call, chain):
                continue
            cuts = [(gone, cut) for gone, cut in self.cut if self._is_in(call, self.chain(gone.snapshot))]
            if not cuts:
                self.wrong.append(f"{call} was acknowledged and is not in the table")
                continue
            gone, cut = cuts[-1]
            if cut is None:  # the judge has finished a cut that was left, and discarded this
                continue
            if cut.what == "fast_forward":
                self.wrong.append(f"{cut} took {call}, and was not to discard anything")
            elif cut.end == "done" and gone.snapshot.id not in gone_of(cut.result):
                self.wrong.append(f"{cut} took snapshot {gone.snapshot.id} of {gone.call} and does not say so")
            elif cut.ended < call.began:
                self.wrong.append(f"{cut} took {call}, which began later")
        self._check_targets(chain)
        self._check_kept()

    def _chain_of(self, table):
        latest = table._root.snapshots.latest()
        return frozenset(self.chain(latest)) if latest is not None else frozenset()

    def _is_in(self, call, chain):
        """Whether a snapshot of a history holds the rows of a call: what follows it only takes away what it has to."""
        return any(frozenset(call.deed) <= self.by_base[base].rows for base in chain if base in self.by_base)

    def _check_kept(self):
        """What was acknowledged on branches, and tags, are there if no call takes any away."""
        whats = {call.what for call in self.world.calls}
        table = self.table()
        if not whats & {"delete_branch", "rename_branch"}:
            for call in self.world.calls:
                is_ours = call.end == "done" and call.what in ("write b", "write c")
                if is_ours and not self._is_in(call, self._chain_of(table.branch(call.what[-1]))):
                    self.wrong.append(f"{call} was acknowledged and is not in the branch")
        if not whats & {*CUTS, "delete_tag", "rename_tag"}:
            wanted = {"early", *("t" for call in self.world.calls if (call.what, call.end) == ("create_tag", "done"))}
            if lost := wanted - {tag.name for tag in table.tags()}:
                self.wrong.append(f"the tags {sorted(lost)} are gone")

    def _check_targets(self, chain):
        """The last cut decides what the table comes from."""
        cuts = [call for call in self.world.calls if may_have_cut(call)]
        if self.finished is not None or not cuts:
            return
        last = max(cuts, key=lambda call: call.ended)
        if last.end != "done" or any(one is not last and one.ended > last.began for one in cuts):
            return
        target = last.result.snapshot_id
        if not any(base.id == target for base in chain):
            self.wrong.append(f"after {last} the table comes from {sorted(base.id for base in chain)}")

    def _check_consumers(self):
        was_cut = any(may_have_cut(call) for call in self.world.calls)
        rows = self.read(self.table())
        names = {consumer.name for consumer in self.table().consumers()}
        for actor in self.world.actors:
            told, name = dict(actor.memory.get("told", {})), f"c{actor.index}"
            if name not in names or "vectors" in self.kind:
                continue
            try:
                self._poll(name, told)
            except PaimonError as error:
                if not was_cut:
                    self.wrong.append(f"consumer {name} is refused, and nothing was cut: {error!r}")
                continue
            values = [row for step in told.values() for row in step]
            if sorted(values) != sorted(rows):
                self.wrong.append(f"consumer {name} was told {sorted(values)}, and the table holds {sorted(rows)}")

    def _poll(self, name, told):
        stream = self.table().stream(consumer_id=name)
        while (step := stream.poll()) is not None:
            note(told, step)

    def _care(self):
        table = self.table()
        for consumer in table.consumers():
            table.delete_consumer(consumer.name)
        for name in (None, *table.branches()):
            self.table(name).expire_snapshots(retain_min=1, retain_max=1, older_than=0)
        self.world.clock.seconds += 10 * 24 * 3600
        self._clean()
        self.world.clock.seconds += 10 * 24 * 3600
        again = self.table().remove_orphans(dry_run=True)
        if again.files:
            self.wrong.append(f"after orphan cleaning there are orphans: {again}")

    def _clean(self):
        """Remove orphans; what a call that died has left of a branch is deleted first, as the refusal says."""
        try:
            self.table().remove_orphans(dry_run=False)
        except CorruptionError as error:
            halves = [name for name in ("b", "c") if f"delete_branch({name!r})" in str(error)]
            if not halves or not any("branch" in call.what and call.end != "done" for call in self.world.calls):
                raise
            self.table().delete_branch(halves[0])
            self._clean()

    def _write(self):
        table = self.table()
        before = self.read(table) if table.snapshot() is not None else frozenset()
        table.write_arrow(rows(((1, 77_777, 1),)))
        if self.read(self.table()) != before | {(1, 77_777, 1)}:
            self.wrong.append("a write afterwards changes other rows")


def note(told, step):
    """Note the rows of a step by its identifier: a step that comes again tells the same."""
    found = step.to_arrow().to_pydict()
    values = sorted(zip(found["p"], found["k"], found["v"]))
    if set(found["_row_kind"]) - {"+I"} or told.setdefault(step.identifier, values) != values:
        raise AssertionError(f"step {step.identifier} told {told[step.identifier]} and then {values}")


def is_unfinished(call):
    return call.what in CUTS and (call.end in ("died", "unknown") or call.faulty or TAKEN_OVER in str(call.error))


def may_have_cut(call):
    return call.what in CUTS and (call.end != "failed" or call.faulty)


def gone_of(result):
    return getattr(result, "gone_ids", ()) or getattr(result, "snapshot_ids", ())


def is_snapshot(path):
    return "/snapshot/snapshot-" in path


def is_tag(path):
    return "/tag/tag-" in path


def branch_of(path):
    return path.split("/branch/branch-", 1)[1].split("/", 1)[0] if "/branch/branch-" in path else ""


def changed(wanted, found):
    """What is missing and what is too much."""
    return f"missing {sorted(wanted - found)}, too much {sorted(found - wanted)}"

