"""What actors do: each verb takes an actor and plain arguments, so that a program prints as a list of tuples."""

from __future__ import annotations

import contextlib
import copy
import copyreg
import functools
from collections import Counter

import pyarrow as pa
from simulation import java
from simulation.kinds import KINDS, NAME, PATH, WAREHOUSE, Deed, rows, written
from simulation.kinds import row_key as key_of
from simulation.world import ActorStore

from paimon_py import AddColumn, Catalog, Changes, RemoveOption, SetOption, Table
from paimon_py.commit.commit import commit as commit_changes
from paimon_py.commit.request import CommitRequest
from paimon_py.errors import CommitUnknownError, StorageError
from paimon_py.metadata.root import TableRoot
from paimon_py.spec.commit_label import CommitLabel

COLUMN = "file-index.bitmap.columns"
REPEATS = 2


def program(scene, steps):
    """What an actor does: one step after the other, all with the same table object."""

    def play(actor):
        actor.scene = scene
        for name, *arguments in steps:
            VERBS[name](actor, *arguments)

    return play


def table_of(actor):
    if "table" not in actor.memory:
        root = TableRoot(actor.store, PATH, actor.env)
        actor.memory["table"] = Table(root, root.schemas.latest(), NAME)
    return actor.memory["table"]


def reopen(actor):
    """Go on with a table object that was opened just now."""
    actor.memory.pop("table", None)


def insisting(actor, deed, function, what=""):
    """Call, and repeat the same call while nobody knows what came of it, or the store failed."""
    for _ in range(1 + REPEATS):
        call = actor.call(deed, function, what)
        if call.end == "done" or not isinstance(call.error, (CommitUnknownError, StorageError)):
            return call
    return call


def values_of(actor, keys):
    """New rows with these keys; no two actors write the same values."""
    count = actor.memory["values"] = actor.memory.get("values", 0) + 1
    return tuple((k % 2, k, 100_000 * (actor.index + 1) + 100 * count + place) for place, k in enumerate(keys))


def deed_of(actor, kind, values):
    return Deed(f"rows {values}", written(kind, values))


# -- writing ----------------------------------------------------------------------------------------------------------


def commit(actor, number, user=None, identifier=None):
    """Commit prepared changes, as often as it takes."""
    changes, deed = actor.scene.changes[number]
    table = table_of(actor)
    insisting(actor, deed, lambda: table.commit(changes, user=user, identifier=identifier), f"commit {number}")


def commit_once(actor, number, user=None, identifier=None):
    """Commit prepared changes, and never mind."""
    changes, deed = actor.scene.changes[number]
    table = table_of(actor)
    actor.call(deed, lambda: table.commit(changes, user=user, identifier=identifier), f"commit {number}")


def commit_both(actor, one, other, user=None, identifier=None):
    """Commit two prepared changes as one."""
    (first, deed), (second, more) = actor.scene.changes[one], actor.scene.changes[other]
    both = Deed(f"{deed.key} and {more.key}", lambda state: more.apply(deed.apply(state)), (deed.key, more.key))
    table = table_of(actor)
    insisting(actor, both, lambda: table.commit([first, second], user=user, identifier=identifier), "commit both")


def replace(actor, number, user=None, identifier=None):
    """Commit prepared changes in the place of all rows."""
    changes, deed = actor.scene.changes[number]
    table, nothing = table_of(actor), {} if KINDS[actor.scene.kind].key else Counter()
    instead = Deed(deed.key, lambda _: deed.apply(nothing))
    how = {"user": user, "identifier": identifier, "overwrite": {}}
    insisting(actor, instead, lambda: table.commit(changes, **how), f"replace {number}")


def java_commit(actor, number):
    """Commit prepared changes, and publish as Java does on a local disk."""
    actor.store = JavaStore(actor.world, actor)
    reopen(actor)
    changes, deed = actor.scene.changes[number]
    table = table_of(actor)
    actor.call(deed, lambda: table.commit(changes), f"java commit {number}")


def java_alter(actor, value):
    """Alter, and publish as Java does on a local disk."""
    actor.store = JavaStore(actor.world, actor)
    reopen(actor)
    alter(actor, value, "source.split.open-file-cost")


class JavaStore(ActorStore):
    """Publishes by looking whether a file is there and then putting it there, whatever is: two steps."""

    def put_new(self, path, data, *, within=None):
        if self.stat(path) is not None:
            return False
        self.put(path, data, within=within)
        return True


def pause(actor):
    """A step at which others may go on."""
    actor.env.clock.sleep(0)


def write(actor, *keys):
    """Write and commit at once."""
    values = values_of(actor, keys)
    table = table_of(actor)
    actor.call(deed_of(actor, actor.scene.kind, values), lambda: table.write_arrow(rows(values)), f"write {values}")


def rounds(actor, *keys):
    """A writer that stays open: one commit for each key, with user and identifier."""
    table = table_of(actor)
    opened = actor.call(None, table.writer, "writer")
    if opened.end != "done":
        return
    writer, user = opened.result, f"w{actor.index}"
    for key in keys:
        values = values_of(actor, (key, key + 1))
        number = actor.memory["values"]
        handed = actor.call(None, functools.partial(_written, writer, values), "changes")
        if handed.end != "done":
            return
        changes = handed.result
        deed = deed_of(actor, actor.scene.kind, values)
        call = insisting(actor, deed, functools.partial(table.commit, changes, user=user, identifier=number))
        if call.end == "unknown":
            return
        if call.end == "failed":
            actor.call(None, lambda: writer.discard(changes), "discard")
            return


def _written(writer, values):
    writer.write_arrow(rows(values))
    return writer.changes()


def forked(actor, *keys):
    """A writer with rows in memory, of which a fork makes two: this actor goes on, and actor 1 finds a copy."""
    table, other = table_of(actor), actor.world.actors[1]
    writer = table.writer()
    values = values_of(actor, keys)
    writer.write_arrow(rows(values))
    with _copied_as_memory(type(writer)):
        actor.world.fork = (*copy.deepcopy((writer, table), _memory_of(table._root, other)), values)
    pause(actor)
    _finish(actor, writer, table, values)


@contextlib.contextmanager
def _copied_as_memory(kind):
    """Lets `copy.deepcopy` do to objects of a class what a fork does, even to those that refuse to be copied."""
    copyreg.dispatch_table[kind] = lambda given: (copyreg.__newobj__, (kind,), vars(given))
    try:
        yield
    finally:
        del copyreg.dispatch_table[kind]


def _memory_of(root, other):
    """What a table's root is in the memory of another process, for `copy.deepcopy`."""
    twin, (clock, ids) = TableRoot(other.store, root.path, other.env), (root.env.clock, root.env.ids)
    parts = ("env", "store", "snapshots", "schemas", "files", "tags", "manifests")
    same = {id(getattr(root, part)): getattr(twin, part) for part in parts}
    return {id(root): twin, id(clock): other.env.clock, id(ids): other.env.ids, **same}


def child(actor):
    """What a fork has left to us: the same memory, on our own connection to the store."""
    left = getattr(actor.world, "fork", None)
    if left is not None:
        _finish(actor, *left)


def _finish(actor, writer, table, values):
    handed = actor.call(None, writer.changes, "changes")
    if handed.end == "done":
        deed = deed_of(actor, actor.scene.kind, values)
        call = actor.call(deed, lambda: table.commit(handed.result), "commit")
        if call.end == "failed":
            actor.call(None, lambda: writer.discard(handed.result), "discard")


# -- changing rows ----------------------------------------------------------------------------------------------------


def _mapped(state, change):
    """The rows after each was changed, or went where `change` gives None."""
    if isinstance(state, Counter):
        found = Counter()
        for row, count in state.items():
            new = change(row)
            if new is not None:
                found[new] += count
        return found
    new = {key: change(row) for key, row in state.items()}
    return {key: row for key, row in new.items() if row is not None}


def delete(actor, key):
    table = table_of(actor)
    deed = Deed(_name(actor, "delete"), lambda state: _mapped(state, lambda row: None if row[1] == key else row))
    actor.call(deed, lambda: table.delete(f"k = {key}"), f"delete {key}")


def update(actor, key):
    table, add = table_of(actor), 1_000_000 * (actor.index + 1)
    changed = lambda row: (*row[:2], row[2] + add) if row[1] == key else row  # noqa: E731
    deed = Deed(_name(actor, "update"), lambda state: _mapped(state, changed))
    new = lambda batch: pa.array([value + add for value in batch["v"].to_pylist()], pa.int32())  # noqa: E731
    actor.call(deed, lambda: table.update(f"k = {key}", {"v": new}), f"update {key}")


def upsert(actor, *keys):
    table, values, kind = table_of(actor), values_of(actor, keys), actor.scene.kind
    keyed = bool(KINDS[kind].key)
    on = None if keyed else ["p", "k"]

    def apply(state):
        if keyed:
            return {**state, **{key_of(kind, row): row for row in values}}
        new = {row[:2]: row for row in values}
        found = _mapped(state, lambda row: new.get(row[:2], row))
        return found + Counter([row for row in values if row not in found])

    actor.call(Deed(_name(actor, "upsert"), apply), lambda: table.upsert(rows(values), on=on), f"upsert {values}")


def set_rows(actor, key, read_before=True):
    """Set v of the rows with a key, by their row ids: values from those that were read, or new ones, whatever they are now."""
    table, add = table_of(actor), 1_000_000 * (actor.index + 1)
    snapshot = actor.call(None, table.snapshot, "snapshot").result
    if snapshot is None:
        return
    scan = lambda: table.scan(columns=["_ROW_ID", "p", "k", "v"], where=f"k = {key}", snapshot_id=snapshot.id).to_arrow()  # noqa: E731
    found = actor.call(None, scan, "read")
    if found.end != "done" or not found.result.num_rows:
        return
    pause(actor)
    rows = [tuple(row.values()) for row in found.result.to_pylist()]
    new = {row[3] % 1_000_000: row[3] + add if read_before else row[3] % 1_000_000 + add for row in rows}
    data = pa.table({"_ROW_ID": found.result["_ROW_ID"], "v": pa.array([new[row[3] % 1_000_000] for row in rows], pa.int32())})
    read = {row[1:] for row in rows}

    def change(row):
        hit = row in read if read_before else row[1] == key and row[2] % 1_000_000 in new
        return (*row[:2], new[row[2] % 1_000_000]) if hit else row

    deed = Deed(_name(actor, "set_rows"), lambda state: _mapped(state, change))
    how = {"snapshot_id": snapshot.id} if read_before else {}
    actor.call(deed, lambda: table.update_rows(data, **how), f"set_rows {key}")


def commit_blind(actor, number):
    """Commit prepared columns as a verb does, but without asking whether the files that it read are still there."""
    changes, deed = actor.scene.changes[number]
    opened = table_of(actor)._open_table
    request = CommitRequest(label=CommitLabel(None, None), is_new=True)
    actor.call(deed, lambda: commit_changes(opened, Changes.from_bytes(changes), request), f"commit blind {number}")


def grow(actor, name="x"):
    """Add a column."""
    table = table_of(actor)
    actor.call(None, lambda: table.alter(AddColumn(name, "INT")), "grow")
    reopen(actor)


def java_index(actor):
    """An index over the row ids of column v appears."""
    actor.call(None, lambda: java.index_column(table_of(actor)._root), "java index")


def _name(actor, verb):
    count = actor.memory["deeds"] = actor.memory.get("deeds", 0) + 1
    return f"{verb} {count} of actor {actor.index}"


# -- care -------------------------------------------------------------------------------------------------------------


def compact(actor, full=True):
    table = table_of(actor)
    actor.call(None, lambda: table.compact(full=full), "compact")


def tasks(actor, full=True, repeats=1):
    """Compact in tasks, and commit the results as often as that."""
    table = table_of(actor)
    planned = actor.call(None, lambda: table.compaction_tasks(full=full), "plan")
    if planned.end != "done" or not planned.result:
        return
    made = [actor.call(None, functools.partial(table.run_compaction, task), "run") for task in planned.result]
    done = [bytes(one.result) for one in made if one.end == "done"]
    for _ in range(repeats if done else 0):
        actor.call(None, lambda: table.commit(done), "commit tasks")


def commit_compaction(actor, number=0, user=None, identifier=None):
    """Commit a compaction that was prepared."""
    table = table_of(actor)
    if number < len(actor.scene.compactions):
        changes = actor.scene.compactions[number]
        insisting(actor, None, lambda: table.commit(changes, user=user, identifier=identifier), "commit compaction")


def merge_manifests(actor):
    actor.call(None, table_of(actor).compact_manifests, "compact manifests")


def index(actor, wanted=True):
    """Ask for a file index or do without, and bring the files in line."""
    table = table_of(actor)
    change = SetOption(COLUMN, "v") if wanted else RemoveOption(COLUMN)
    actor.call(None, lambda: table.alter(change), "alter")
    actor.call(None, table.rewrite_file_index, "rewrite_file_index")


def tag(actor, name="t"):
    actor.call(None, lambda: table_of(actor).create_tag(name), "create tag")


def untag(actor, name="early"):
    actor.call(None, lambda: table_of(actor).delete_tag(name), "delete tag")


def expire(actor, keep=1):
    actor.call(None, lambda: java.expire(table_of(actor)._root, keep), "expire")


def roll_back(actor, back=1):
    """At once: nobody can help a rollback that has looked at the snapshots before another was published."""
    root = table_of(actor)._root
    actor.quiet = True
    actor.call(None, lambda: java.roll_back(root, back), "roll back")
    actor.quiet = False


def alter(actor, value="1 mb", option="source.split.target-size"):
    table = table_of(actor)
    actor.call(None, lambda: table.alter(SetOption(option, value)), "alter")


def rename(actor, source="t", target="u"):
    catalog = Catalog(actor.store, WAREHOUSE, env=actor.env)
    actor.call(None, lambda: catalog.rename_table(f"db.{source}", f"db.{target}"), "rename")


def drop(actor):
    catalog = Catalog(actor.store, WAREHOUSE, env=actor.env)
    actor.call(None, lambda: catalog.drop_table("db.t"), "drop")


VERBS = {
    verb.__name__: verb
    for verb in (
        commit, commit_once, replace, java_commit, java_alter, pause, drop, commit_both, write, rounds, forked, child, delete, update, upsert, set_rows, commit_blind, grow, java_index, compact,
        tasks,
        commit_compaction, merge_manifests, index, tag, untag, expire, roll_back, alter, rename, reopen,
    )
}  # fmt: skip
