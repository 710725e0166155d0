"""Every kind of table, everything that can be done to one, and what that does to its rows by a model.

Shared by the tests in which a store fails (`test_operation_faults`) and those in which somebody else is faster
(`test_operation_races`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from faults.compaction_support import Row, Scene, State, batch, built, check_table, content, orphans, table_on

from paimon_py import AddColumn, CommitUnknownError, NotFoundError, PaimonError, Table

FIRST = (*((1, k, k, k) for k in range(1, 7)), *((2, k, k, k) for k in range(1, 5)))
OVERLAPPING = (FIRST, ((1, 1, 10, 1), (1, 7, 7, None), (2, 2, 20, 2)), ((1, 2, 30, 30), (1, 3, None, 3), (2, 5, 5, 5)))
DISTINCT = (FIRST, ((1, 7, 7, None), (1, 8, 8, 8), (2, 5, 5, 5)), ((1, 9, None, 9), (1, 10, 10, 10), (2, 6, 6, 6)))
NEW = ((1, 1, 100, 100), (1, 50, 5, 5), (3, 1, 1, 1))
OTHERS = ((1, 60, 6, 6), (1, 61, 6, 6), (3, 2, 2, 2))
LATE = ((1, 3, 8, 8), (1, 62, 6, 6), (2, 98, 7, 7))
MET = ((1, 6, -3, 5), (1, 3, -4, 5), (2, 98, -5, 5), (2, 99, -6, 5))
SOURCE = ((1, 2, -2, None), (1, 4, -4, 4), (2, 1, -1, 1), (2, 99, -99, 99))

EAGER = {"num-sorted-run.compaction-trigger": "2"}
VECTORS = {"deletion-vectors.enabled": "true"}
BUCKETS = {"bucket": "2", "bucket-key": "k"}
FEW = {"compaction.min.file-num": "2"}
CURVE = {"clustering.incremental": "true", "clustering.columns": "v,k", **EAGER}
DYNAMIC = {"bucket": "-1", "dynamic-bucket.target-row-num": "4"}
INPUT = {"changelog-producer": "input"}
POSTPONED = {"bucket": "-2", "postpone.default-bucket-num": "2"}
AVRO = {"file.format": "avro"}
"""Files of one write each: kinds of tables without it show what comes of the many writes of a Parquet or ORC file."""
EVOLVES = {"row-tracking.enabled": "true", "data-evolution.enabled": "true"}
INDEXED = {"file-index.bitmap.columns": "v", "file-index.in-manifest-threshold": "0 b"}


def _append(dead: int = 0, altered: dict[str, str] | None = None, **options: str) -> Scene:
    options = {**FEW, **options}
    return Scene(engine="append", loads=DISTINCT, partitioned=True, options=options, dead=dead, altered=altered or {})


def _keyed(options: dict[str, str], *, engine: str = "deduplicate", raised: int = 1, **more: object) -> Scene:
    return Scene(engine=engine, loads=OVERLAPPING, partitioned=True, raised=raised, options=options, **more)


KINDS = {
    "files": _append(altered=INDEXED),
    "vectors": _append(dead=3, **VECTORS, **AVRO),
    "buckets": _append(**BUCKETS, **AVRO),
    "vectors in buckets": _append(altered=INDEXED, **BUCKETS, **VECTORS, **AVRO),
    "clustered": _append(**CURVE, **{"file.format": "orc"}),
    "columns": _append(dead=3, altered=INDEXED, **EVOLVES, **VECTORS, **AVRO),
    "keyed": _keyed({"bucket": "2", "write-only": "true"}, altered=INDEXED),
    "eager": _keyed({"bucket": "1", **EAGER, **AVRO}),
    "keyed vectors": _keyed({"bucket": "1", **VECTORS, **EAGER}, raised=2),
    "settled vectors": _keyed({"bucket": "2", **VECTORS, **AVRO}, raised=3),
    "sums": _keyed({"bucket": "1", **EAGER, **AVRO}, engine="aggregation"),
    "dynamic": _keyed({**DYNAMIC, "write-only": "true"}, altered=INDEXED),
    "dynamic vectors": _keyed({**DYNAMIC, **VECTORS, **AVRO}, raised=2),
    "dynamic without index": _keyed({**DYNAMIC, **AVRO, "write-only": "true"}, raised=0, loses_index=True),
    "moving": _keyed({**DYNAMIC, **AVRO, "write-only": "true"}, altered=INDEXED, moving=True),
    "moving vectors": _keyed({**DYNAMIC, **VECTORS, **AVRO}, raised=2, moving=True),
    "moving sums": _keyed({**DYNAMIC, **EAGER, **AVRO}, engine="aggregation", moving=True),
    "postponed": _keyed(POSTPONED),
    "postponed vectors": _keyed({**POSTPONED, **VECTORS, **AVRO}),
    "postponed sums": _keyed({**POSTPONED, **AVRO}, engine="aggregation"),
    "told": _keyed({"bucket": "1", **INPUT, **EAGER, **AVRO}),
    "moving told": _keyed({**DYNAMIC, **INPUT, **AVRO, "write-only": "true"}, moving=True),
    "postponed told": _keyed({**POSTPONED, **INPUT, **AVRO}),
}

Model = Callable[[Scene, State], State]


class Operation(msgspec.Struct, frozen=True):
    """What is done, what it makes of the rows, and to which tables it can be done.

    `beside`: rows that another process commits in the middle of it. `unseen`: what it makes of the rows that are seen
    before what it wrote is compacted. `partly`: what it makes of them if it ends after the first of its commits.
    """

    run: Callable[[Table], object]
    effect: Model
    fits: Callable[[Scene], bool] = lambda scene: True
    beside: tuple[Row, ...] = ()
    unseen: Model | None = None
    partly: Model | None = None


# -- models ---------------------------------------------------------------------------------------------------------


def same(scene: Scene, state: State) -> State:
    return state


def after_late(model: Model) -> Model:
    return lambda scene, state: model(scene, scene.after(state, LATE))


def adding(*loads: tuple[Row, ...]) -> Model:
    return lambda scene, state: functools.reduce(scene.after, loads, state)


def replacing(gone: Callable[[int], bool], rows: tuple[Row, ...] = ()) -> Model:
    """Partitions go and rows come."""
    return lambda scene, state: scene.after({key: value for key, value in state.items() if not gone(key[0])}, rows)


def each_row(change: Callable[[Row], Row | None]) -> Model:
    """What becomes of every row for itself."""

    def model(scene: Scene, state: State) -> State:
        found: State = {}
        for key, value in state.items():
            append = scene.engine == "append"
            row = change(key if append else (*key, *value))
            if row is None:
                continue
            if append:
                found[row] = found.get(row, 0) + value
            else:
                found[row[:2]] = row[2:]
        return found

    return model


def _deleted(row: Row) -> Row | None:
    return None if row[1] == 2 or (row[0] == 2 and row[1] > 3) else row


def _counted(row: Row) -> Row:
    p, k, v, w = row
    return (p, k, v + 1, 77) if k in (3, 4) and v is not None else row


def _merged(scene: Scene, state: State) -> State:
    """Rows with a source: gone if its w is NULL, else with its v; the others are added."""
    source = {row[:2]: row for row in SOURCE}

    def change(row: Row) -> Row | None:
        own = source.get(row[:2])
        if own is None:
            return row
        return None if own[3] is None else (*row[:2], own[2], row[3])

    left = {key[:2] for key in state}
    return scene.after(each_row(change)(scene, state), tuple(row for row in SOURCE if row[:2] not in left))


def _met(scene: Scene, state: State) -> State:
    """Rows with a source get its v and one more; the others are added."""
    source = {row[:2]: row for row in MET}
    left = {key[:2] for key in state}
    changed = each_row(lambda row: (*row[:2], source[row[:2]][2] + 1, row[3]) if row[:2] in source else row)(scene, state)
    return scene.after(changed, tuple(row for row in MET if row[:2] not in left))


def _upserted(scene: Scene, state: State) -> State:
    new = {row[:2]: row for row in NEW}
    left = {key[:2] for key in state}
    changed = each_row(lambda row: new.get(row[:2], row))(scene, state)
    return scene.after(changed, tuple(row for row in NEW if row[:2] not in left))


def _kept(scene: Scene, state: State) -> State:
    """The rows of NEW without w: rows that are there keep theirs."""
    return scene.after(state, tuple((p, k, v, state.get((p, k), (None, None))[1]) for p, k, v, _ in NEW))


# -- verbs ----------------------------------------------------------------------------------------------------------


def merge(table: Table) -> object:
    return table.merge(
        batch(SOURCE), ["p", "k"], when_matched_delete="source.w IS NULL", when_matched_update={"v": "source.v"},
        when_not_matched_insert=True,
    )  # fmt: skip


def count_up(table: Table) -> object:
    return table.update("k IN (3, 4) AND v IS NOT NULL", {"v": lambda old: pc.add(old["v"], 1), "w": 77})


def drop_part(table: Table) -> object:
    """The partition goes; others may have dropped it before."""
    try:
        return table.drop_partitions([{"p": 1}])
    except NotFoundError as gone:
        if "has no partition" not in str(gone):
            raise
        return None


def set_rows(table: Table) -> object:
    """Values for rows with some ids."""
    read = table.snapshot().id
    found = table.scan(snapshot_id=read, columns=["_ROW_ID", "v"], where="k IN (3, 4) AND v IS NOT NULL").to_arrow()
    values = {"_ROW_ID": found["_ROW_ID"], "v": pc.add(found["v"], 1), "w": pa.array([77] * len(found), pa.int64())}
    return table.update_rows(pa.table(values), snapshot_id=read)


def overtaken_update(table: Table) -> object:
    """Others add rows while the values are made, of which one is to be updated, too."""

    def values(old):
        late(table)
        return pc.add(old["v"], 1)

    return table.update("k IN (3, 4) AND v IS NOT NULL", {"v": values, "w": 77})


def overtaken_merge(table: Table) -> object:
    """Others add rows while the values are made, of which one is to be updated, not to be added."""

    def values(rows):
        late(table)
        return pc.add(rows["source.v"], 1)

    return table.merge(batch(MET), ["p", "k"], when_matched_update={"v": values}, when_not_matched_insert=True)


def add_column(table: Table) -> object:
    """Once; a call whose answer was lost may have done it."""
    return None if "x" in table._root.schemas.latest().names else table.alter(AddColumn("x", "INT"))


def shared(table: Table) -> object:
    """Two writers share the keys, in processes of their own; one commit."""
    data = batch(NEW)
    numbers = table.writer_numbers(data, 2)
    writers, parts = [], []
    try:
        for number in range(2):
            with table.writer(share=(number, 2)) as writer:
                writers.append(writer)
                writer.write_arrow(data.filter(pc.equal(numbers, pa.scalar(number, pa.int32()))))
            parts.append(writer.changes())
        return table.commit([bytes(part) for part in parts])
    except CommitUnknownError:
        raise
    except PaimonError:
        for writer, part in zip(writers, parts):
            writer.discard(part)
        raise


def late(table: Table) -> None:
    """Others add rows, once."""
    other = beside(table)
    if other.scan(where="k = 62").count() == 0:
        other.write_arrow(batch(LATE))


def beside(table: Table) -> Table:
    """The table as others have it, whose calls never fail."""
    store = table._root.store
    return table_on(getattr(store, "store", store), f"other{table._root.env.ids.uuid()}")


def overtaken(table: Table) -> object:
    """Others add keys while the writer is at work: the commit unites both indexes."""
    with table.writer() as writer:
        writer.write_arrow(batch(NEW))
        beside(table).write_arrow(batch(OTHERS))
        changes = writer.changes()
        try:
            return table.commit(changes)
        except CommitUnknownError:
            raise
        except PaimonError:
            writer.discard(changes)
            raise


def rounds(table: Table) -> object:
    """One writer commits twice, and reads where keys lie only once."""
    with table.writer() as writer:
        for rows in (NEW, OTHERS):
            writer.write_arrow(batch(rows))
            changes = writer.changes()
            try:
                done = table.commit(changes)
            except CommitUnknownError:
                raise
            except PaimonError:
                writer.discard(changes)
                raise
    return done


def option(scene: Scene, name: str) -> str | None:
    return scene.options.get(name)


def is_append(scene: Scene) -> bool:
    return scene.engine == "append"


def is_dynamic(scene: Scene) -> bool:
    return option(scene, "bucket") == "-1" and not scene.moving


def shares_buckets(scene: Scene) -> bool:
    """Whether several writers may write one bucket: readers do not wait for the compaction of its writer."""
    waits = option(scene, "deletion-vectors.enabled") == "true" or option(scene, "changelog-producer") == "lookup"
    return is_dynamic(scene) and not waits and option(scene, "merge-engine") != "first-row"


def is_moving(scene: Scene) -> bool:
    return scene.moving


def replaces_parts(scene: Scene) -> bool:
    return not scene.moving


def moves_rows(scene: Scene) -> bool:
    return scene.moving and scene.engine == "deduplicate"


def changes_rows(scene: Scene) -> bool:
    return scene.engine in ("append", "deduplicate") and option(scene, "bucket") != "-2"


def looks_rows_up(scene: Scene) -> bool:
    return changes_rows(scene) and scene.engine == "deduplicate" and not scene.moving


def has_fixed_buckets(scene: Scene) -> bool:
    return option(scene, "bucket") not in (None, "-1") and (not scene.skips_level_0 or scene.raised == 3)


def is_sortable(scene: Scene) -> bool:
    others = {"clustering.incremental", "data-evolution.enabled"} & scene.options.keys()
    return is_append(scene) and not option(scene, "bucket") and not others


def evolves(scene: Scene) -> bool:
    return "data-evolution.enabled" in scene.options


OPERATIONS = {
    "write": Operation(lambda t: t.write_arrow(batch(NEW)), adding(NEW)),
    "delete": Operation(lambda t: t.delete("k = 2 OR (p = 2 AND k > 3)"), each_row(_deleted), changes_rows),
    "update": Operation(count_up, each_row(_counted), changes_rows),
    "upsert": Operation(lambda t: t.upsert(batch(NEW), on=["p", "k"]), _upserted, changes_rows),
    "merge": Operation(merge, _merged, changes_rows),
    "compact": Operation(lambda t: t.compact(), same),
    "compact fully": Operation(lambda t: t.compact(full=True), same),
    "sort": Operation(lambda t: t.compact(order_by=["v", "k"], strategy="zorder"), same, is_sortable),
    "rescale": Operation(lambda t: t.rescale(3), same, has_fixed_buckets),
    "index": Operation(lambda t: t.rewrite_file_index(), same, lambda scene: bool(scene.altered)),
    "overwrite": Operation(
        lambda t: t.write_arrow(batch(NEW), overwrite="dynamic"), replacing(lambda p: p in (1, 3), NEW),
        replaces_parts, unseen=replacing(lambda p: p in (1, 3)),
    ),
    "replace": Operation(
        lambda t: t.write_arrow(batch(NEW[:2]), overwrite={"p": 1}), replacing(lambda p: p == 1, NEW[:2]),
        replaces_parts, unseen=replacing(lambda p: p == 1),
    ),
    "replace all": Operation(
        lambda t: t.write_arrow(batch(NEW), overwrite={}), replacing(lambda p: True, NEW), is_moving,
        unseen=replacing(lambda p: True),
    ),
    "rounds": Operation(rounds, adding(NEW, OTHERS), moves_rows, partly=adding(NEW)),
    "truncate": Operation(lambda t: t.truncate(), replacing(lambda p: True)),
    "drop": Operation(drop_part, replacing(lambda p: p == 1)),
    "alter": Operation(add_column, same),
    "shared writers": Operation(shared, adding(NEW), shares_buckets),
    "overtaken writer": Operation(overtaken, adding(OTHERS, NEW), is_dynamic, OTHERS),
    "set rows": Operation(set_rows, each_row(_counted), evolves),
    "overtaken update": Operation(overtaken_update, after_late(each_row(_counted)), changes_rows, LATE),
    "upsert some": Operation(lambda t: t.upsert(batch(NEW).select(["p", "k", "v"])), _kept, looks_rows_up),
    "overtaken merge": Operation(overtaken_merge, after_late(_met), changes_rows, LATE),
}  # fmt: skip


# -- what a table holds ---------------------------------------------------------------------------------------------


class Held(msgspec.Struct, frozen=True):
    """What is read of a table, and what will be when everything is compacted or published."""

    seen: State
    full: State


def held(store, scene: Scene) -> Held:
    """What the table holds, as another process finds it; the store stays as it is."""
    seen = content(table_on(store, "reader"), scene, settled=not scene.skips_level_0)
    if not scene.skips_level_0:
        return Held(seen, seen)
    settled = store.copy()
    table_on(settled, "settler").compact(full=True)
    return Held(seen, content(table_on(settled, "reader"), scene))


@functools.cache
def prepared(kind: str) -> Held:
    """What the tables of a kind hold in the beginning."""
    return held(built(KINDS[kind])[0], KINDS[kind])


@functools.cache
def ended(kind: str, name: str) -> Held:
    """What a table holds after an operation that nobody disturbs."""
    store = built(KINDS[kind])[0]
    OPERATIONS[name].run(table_on(store, "alone"))
    table = table_on(store, "checker")
    assert orphans(table, check_table(table, KINDS[kind])) == []
    return held(store, KINDS[kind])
