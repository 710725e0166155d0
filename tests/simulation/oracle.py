"""What must hold after a run, whatever happened in it: the journal of changes is gone through once more."""

from __future__ import annotations

from collections import Counter

from simulation.contents import Broken, Files, folded, snapshot_of, tag_of
from simulation.kinds import KINDS, PATH

from paimon_py.spec.snapshot import CommitKind


class Info:
    """A snapshot that was published, and all that is known of it.

    `stray`: it was put where it follows from nothing. `read_back`: who published it has looked at it since.
    """

    def __init__(self, snapshot, effect, parent, stray):
        self.snapshot = snapshot
        self.effect = effect
        self.parent = parent
        self.stray = stray
        self.fate = "there"
        self.read_back = False
        self.wrong = []
        self.live, self.rows = {}, None
        self.deeds = parent.deeds if parent else frozenset()
        self.gone = parent.gone if parent else frozenset()
        self.named = set()
        self.deed = None

    @property
    def call(self):
        return self.effect.call if self.effect else None


class Oracle:
    """Looks at a run that has ended. `wrong` collects what does not hold."""

    def __init__(self, world, before, done, kind):
        self.world = world
        self.kind = kind
        self.keyed = bool(KINDS[kind].key)
        self.wrong = []
        self.files = Files({path.rsplit("/", 1)[1]: data for path, data in before.items()})
        self.present = set(self.files.data)
        self.lineages = {PATH: Lineage()}
        self.unjudged = False
        self.expired = {}
        lineage = self.lineages[PATH]
        for path, data in sorted(before.items(), key=lambda item: (len(item[0]), item[0])):
            if is_snapshot(path):
                self._publish(lineage, data, None)
            elif is_tag(path):
                lineage.tags[path.rsplit("/", 1)[1]] = self._tag(lineage, data)
        for info in lineage.there.values():
            info.deeds = frozenset(key for key, number in done.items() if number <= info.snapshot.id)

    def judge(self):
        for effect in self.world.journal:
            self._follow(effect)
        for lineage in self.lineages.values():
            for info in lineage.all:
                if info.fate != "withdrawn" and not (info.stray and self._excused(info)):
                    self.wrong += info.wrong
                    if info.stray:
                        self.wrong.append(f"snapshot {info.snapshot.id} of {info.call} follows from nothing and stays")
                elif info.stray and info.fate == "there":
                    self.unjudged = True
        if self.unjudged:
            return []
        self._check_calls()
        self._check_files()
        return self.wrong

    def _excused(self, info):
        """Whether who published a stray snapshot could not take it away: it died, or its store failed."""
        return info.call is None or info.call.end in ("died", "unknown") or info.call.faulty

    # -- going through the journal ----------------------------------------------------------------------------------

    def _follow(self, effect):
        path = effect.path
        name = path.rsplit("/", 1)[1]
        if effect.verb == "rename":
            target = effect.data.decode()
            self.lineages[target] = self.lineages.pop(path, Lineage())
            return
        lineage = next((self.lineages[root] for root in self.lineages if path.startswith(root + "/")), None)
        if lineage is None:
            changes = effect.verb not in ("delete", "get")
            if ("/schema/" in path or is_snapshot(path)) and changes:
                self.wrong.append(f"{effect.call} brings a table back to life: {path}")
            if is_snapshot(path) and changes:
                lineage = self.lineages[path.rsplit("/snapshot/", 1)[0]] = Lineage()
                lineage.lost = True
            else:
                return
        if effect.verb == "delete":
            self._delete(lineage, effect, name)
            return
        if effect.verb == "get":
            info = lineage.there.get(int(name.rsplit("-", 1)[1]))
            if info is not None and info.effect is not None and info.effect.actor is effect.actor:
                info.read_back = True
            return
        if is_snapshot(path):
            self._publish(lineage, effect.data, effect)
        elif is_tag(path):
            lineage.tags[name] = self._tag(lineage, effect.data)
        else:
            self.files.data[name] = effect.data
            self.present.add(name)

    def _delete(self, lineage, effect, name):
        self.present.discard(name)
        if is_tag(effect.path):
            lineage.tags.pop(name, None)
            return
        if not is_snapshot(effect.path):
            if effect.call and effect.call.what == "expire":
                self.expired[name] = effect.call
                return
            for info in (*lineage.there.values(), *lineage.tags.values()):
                if name in info.named:
                    self._say(info, f"{effect.call} deleted {name}, which snapshot {info.snapshot.id} names")
            return
        info = lineage.there.pop(int(name.rsplit("-", 1)[1]), None)
        if info is None:
            return
        if effect.call and effect.call.what in ("expire", "roll back"):
            info.fate = "expired" if effect.call.what == "expire" else "rolled back"
            if info.fate == "rolled back":
                lineage.known.pop(info.snapshot.id, None)
        elif info.effect is not None and info.effect.actor is effect.actor:
            info.fate = "withdrawn"
            if lineage.known.get(info.snapshot.id) is info:
                del lineage.known[info.snapshot.id]
        else:
            self.wrong.append(f"{effect.call} deleted snapshot {info.snapshot.id} of {info.call}")

    def _say(self, info, text):
        (info.wrong if info.effect else self.wrong).append(text)

    def _tag(self, lineage, data):
        snapshot = tag_of(data)
        info = next((one for one in lineage.all if one.snapshot == snapshot), None)
        if info is None:
            info = Info(snapshot, None, None, False)
            self._check_snapshot(info)
        return info

    def _publish(self, lineage, data, effect):
        snapshot = snapshot_of(data)
        taken = lineage.there.get(snapshot.id)
        if taken is not None:
            taken.fate = "replaced"
            if not (effect.call and effect.call.what.startswith("java")):
                self.wrong.append(f"{effect.call} put snapshot {snapshot.id} over that of {taken.call}")
            elif taken.read_back:
                self.unjudged = True  # nothing but a lock keeps a Java writer on a local disk from this
        parent = lineage.known.get(snapshot.id - 1)
        stray = effect is not None and (
            any(number > snapshot.id and not info.stray for number, info in lineage.there.items())
            or (snapshot.id > 1 and snapshot.id - 1 not in lineage.there)
            or lineage.lost
        )
        below = lineage.there.get(snapshot.id - 1)
        cut_off = below is not None and (below.stray or below.wrong)
        if cut_off and any(call.what == "roll back" for call in self.world.calls):
            self.unjudged = True  # built on what a rollback has cut off and nobody has withdrawn yet
        info = Info(snapshot, effect, parent, stray)
        lineage.all.append(info)
        lineage.there[snapshot.id] = info
        if not stray:
            lineage.known[snapshot.id] = info
        try:
            self._check_snapshot(info)
        except Broken as error:
            info.wrong.append(f"snapshot {snapshot.id} of {info.call}: {error}")

    def _check_snapshot(self, info):
        snapshot, parent = info.snapshot, info.parent
        history = self.files.entries(snapshot.base_manifest_list)
        base = folded(history)
        delta = self.files.entries(snapshot.delta_manifest_list)
        if info.effect is not None and base.keys() != (parent.live.keys() if parent else set()):
            odd = base.keys() ^ (parent.live.keys() if parent else set())
            raise Broken(f"its base is not its parent: {sorted(one[3] for one in odd)}")
        info.live = folded(delta, base)
        # files that a compaction names anew may return once no manifest tells of their end
        ended = {one.identity for one in history if not one.adds}
        ended |= set() if snapshot.commit_kind is CommitKind.COMPACT else info.gone
        back = [entry.name for entry in delta if entry.adds and entry.identity in ended]
        info.gone |= {entry.identity for entry in delta if not entry.adds}
        if back and info.effect is not None:
            raise Broken(f"{back} return after they were deleted")
        info.named = self.files.named(snapshot, info.live)
        info.rows = self.files.rows(self.kind, self.keyed, snapshot, info.live)
        if info.effect is None:
            return
        missing = [entry.name for entry in delta if entry.adds and entry.name not in self.present]
        if missing:
            raise Broken(f"it names {missing}, which are gone")
        before = parent.rows if parent else self._nothing()
        if snapshot.commit_kind is CommitKind.COMPACT:
            if before is not None and info.rows != before:
                raise Broken(f"compaction changed rows: {difference(before, info.rows)}")
            return
        deed = info.call.deed if info.call else None
        if deed is None:
            if before is not None and info.rows != before:
                raise Broken(f"rows changed: {difference(before, info.rows)}")
            return
        info.deed = deed
        if deed.parts & info.deeds:
            raise Broken(f"{sorted(deed.parts & info.deeds)} is applied twice")
        info.deeds |= deed.parts
        if before is None:
            return
        wanted = deed.apply(before)
        if info.rows != wanted:
            raise Broken(f"it is not its parent and {deed.key}: {difference(wanted, info.rows)}")

    def _nothing(self):
        return {} if self.keyed else Counter()

    # -- afterwards -------------------------------------------------------------------------------------------------

    def lineage(self):
        """The lineage of the table, wherever it lies now."""
        return next(iter(one for one in self.lineages.values() if not one.lost))

    def _check_calls(self):
        lineage = self.lineage()
        infos = [info for one in self.lineages.values() for info in one.all]
        newest = lineage.there[max(lineage.there)] if lineage.there else None
        deeds = newest.deeds if newest else frozenset()
        moved = any(call.what in ("rename", "drop") for call in self.world.calls)
        for call in self.world.calls:
            mine = [info for info in infos if info.call is call]
            standing = [info for info in mine if info.fate not in ("withdrawn", "replaced")]
            if call.end == "bug":
                self.wrong.append(f"{call} raised {call.error!r}")
            elif call.end == "failed":
                if any(info.deed for info in standing):
                    self.wrong.append(f"{call} failed, but snapshot {standing[0].snapshot.id} is there")
                kind = type(call.error).__name__
                if not call.faulty and not moved and call.what != "expire" and kind in ("CorruptionError", "StorageError", "FileMissingError"):
                    self.wrong.append(f"{call} raised {call.error!r}")
            elif call.end == "done" and call.deed is not None and has_result(call.result):
                rolled_back = any(info.fate == "rolled back" and info.deeds & call.deed.parts for info in infos)
                if not call.deed.parts <= deeds and not rolled_back:
                    self.wrong.append(f"{call} was acknowledged and is not in the table")
                ids = {info.snapshot.id for info in standing}
                named = set(call.result.snapshot_ids)
                if not getattr(call.result, "already_committed", False) and not named <= ids:
                    self.wrong.append(f"{call} says {sorted(named)}, but published {sorted(ids)}")

    def _check_files(self):
        lineage = self.lineage()
        ids = sorted(lineage.there)
        if ids and ids != list(range(ids[0], ids[-1] + 1)):
            self.wrong.append(f"there are gaps between snapshots: {ids}")
        stored = self.world.names_left()
        for info in (*lineage.there.values(), *lineage.tags.values()):
            missing = {name for name in info.named - stored if not self._half_expired(name)}
            if missing:
                self.wrong.append(f"snapshot {info.snapshot.id} names {sorted(missing)}, which are gone")


    def _half_expired(self, name):
        """Whether a file was deleted by an expiry that broke off, or had a tag, rollback, rename or expiry beside it: those
        races are Java's own."""
        call = self.expired.get(name)
        rivals = ("create tag", "roll back", "expire", "rename")
        return call is not None and (
            call.end != "done"
            or any(
                other is not call and other.what in rivals and other.began <= call.ended and call.began <= other.ended
                for other in self.world.calls
            )
        )


class Lineage:
    """The snapshots of one table directory: those that are there, those that were not rolled back, and all."""

    def __init__(self):
        self.there = {}
        self.known = {}
        self.all = []
        self.tags = {}
        self.lost = False


def has_result(result):
    return bool(getattr(result, "snapshot_ids", ())) or bool(getattr(result, "already_committed", False))


def is_snapshot(path):
    return "/snapshot/snapshot-" in path


def is_tag(path):
    return "/tag/tag-" in path


def difference(wanted, found):
    """What is missing and what is too much."""
    wanted, found = (Counter(side.values()) if isinstance(side, dict) else side for side in (wanted, found))
    return f"missing {sorted((wanted - found).elements())}, too much {sorted((found - wanted).elements())}"
