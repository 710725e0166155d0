"""Steps that read: scans with everything that can be asked, earlier snapshots, lookups."""

from __future__ import annotations

import pyarrow as pa
from model.plans_in_parts import PLANS
from model.row_model import condition, counted, difference
from model.table_life import ALL_LEVELS, ARROW, KEYS

from paimon_py import UsageError
from paimon_py.scan.split import Split


def scan(life, rng):
    """A filter, a projection, a limit, a count, in whole or split by split."""
    table = life.pick(rng)
    if life.blind:
        return
    names = list(life.known(table))
    with life.cut(table):
        read(rng, table, names, life.content.all(), {"options": ALL_LEVELS} if life.hidden else {})


def travel(life, rng):
    """An earlier snapshot, with the schema of its time."""
    if not life.history:
        return
    number = rng.choice(list(life.history))
    schema_id, rows = life.history[number]
    table = life.pick(rng)
    read(rng, table, list(life.columns_of[schema_id]), rows, {"snapshot_id": number})


def read(rng, table, names, rows, given):
    asked = condition(rng, names) if rng.random() < 0.7 else None
    columns = rng.sample(names, rng.randrange(1, len(names) + 1)) if rng.random() < 0.6 else None
    shown = columns or names
    if asked is not None:
        given = {**given, "where": asked.asked(rng)}
    if columns is not None:
        given = {**given, "columns": columns}
    wanted = [row for row in rows if asked is None or asked.holds(row)]
    made = table.scan(**given)
    plan = rng.choice([None, None, *PLANS])
    if plan is None:
        found = made.to_arrow()
    else:
        planned, found = plan(rng, table, given)
        splits = [Split.from_bytes(bytes(split)) for split in found]
        rng.shuffle(splits)
        parts = [planned.read(split).read_all() for split in splits]
        found = pa.concat_tables(parts) if parts else made.to_arrow()
    wrong = difference(counted(found.to_pylist(), shown), counted(wanted, shown))
    assert not wrong, f"{given} {plan}: {wrong}"
    limit, kind = rng.choice([1, 2, 5, 100]), rng.choice(["count", "limit", "order"])
    if kind == "count":
        assert made.count() == len(wanted), given
    elif kind == "order":
        first_in_order(rng, table, shown, wanted, given, limit)
    else:
        first_rows(rng, table, shown, wanted, given, limit)


def first_rows(rng, table, shown, wanted, given, limit):
    made = table.scan(**given, limit=limit)
    scan, splits = rng.choice(PLANS)(rng, table, {**given, "limit": limit})
    parts = [scan.read(split).read_all() for split in splits]
    at_least = pa.concat_tables(parts).to_pylist() if parts else []
    assert len(at_least) >= min(limit, len(wanted)), given
    for some in (made.to_arrow().to_pylist(), at_least[:limit]):
        assert len(some) == min(limit, len(wanted)), given
        assert counted(some, shown) <= counted(wanted, shown), given


def first_in_order(rng, table, shown, wanted, given, limit):
    """The first rows in an order: of equal ones any may come."""
    by = [(name, rng.choice(["ascending", "descending"])) for name in rng.sample(shown, min(len(shown), rng.choice([1, 2])))]
    found = table.scan(**given, order_by=by, limit=limit).to_arrow().to_pylist()
    assert counted(found, shown) <= counted(wanted, shown), (given, by)
    best = list(wanted)
    for name, direction in reversed(by):
        known = [row for row in best if row.get(name) is not None]
        known.sort(key=lambda row: row[name], reverse=direction == "descending")
        best = known + [row for row in best if row.get(name) is None]
    names = [name for name, _ in by]
    one = [tuple(row.get(name) for name in names) for row in found]
    two = [tuple(row.get(name) for name in names) for row in best[:limit]]
    assert one == two, (given, by)


def lookup(life, rng):
    """Rows by their keys, one or many, also of keys that nobody has."""
    table = life.pick(rng)
    if not life.mode.keyed:
        with life.refused(UsageError):
            table.lookup([{"k": 1}])
        return
    if life.hidden:
        return
    names = list(life.known(table))
    asked = [{"p": rng.choice(life.parts), "k": rng.randrange(KEYS + 3)} for _ in range(rng.choice([1, 1, 5, 40]))]
    keys = [{name: row[name] for name in life.key} for row in asked]
    given = pa.table({name: pa.array([row[name] for row in keys], ARROW[life.columns[name]]) for name in life.key})
    columns = rng.sample(names, rng.randrange(1, len(names) + 1)) if rng.random() < 0.5 else None
    found = {row_key(row, life.key): row for row in life.content.all()}
    missing = rng.choice(["drop", "null"])
    wanted = [found.get(row_key(row, life.key), row if missing == "null" else None) for row in keys]
    shown = columns or names
    wanted = [{name: row.get(name) for name in shown} for row in wanted if row is not None]
    with life.cut(table):
        answer = table.lookup(rng.choice([keys, given]), columns=columns, missing=missing)
        assert answer.to_pylist() == wanted


def row_key(row, key):
    return tuple(row[name] for name in key)


def explain(life, rng):
    """What a plan says must not stand in the way of reading."""
    table = life.pick(rng)
    with life.cut(table):
        assert repr(table.scan(where=condition(rng, list(life.known(table))).text).explain())


def analyze(life, rng):
    """What is stored of columns is what the rows have."""
    table = life.pick(rng)
    if life.blind or life.hidden:
        return
    names = [name for name in life.known(table) if rng.random() < 0.5]
    with life.cut(table):
        found = table.analyze(names or None)
        rows = life.content.all()
        if found is None:
            assert not rows and table.snapshot() is None
            return
        life.commits += 1
        assert table.statistics() == found and found.merged_record_count == len(rows) and list(found.columns) == names
        for name, column in found.columns.items():
            values = [row.get(name) for row in rows if row.get(name) is not None]
            assert (column.null_count, column.distinct_count) == (len(rows) - len(values), len(set(values))), name
            if values and not isinstance(values[0], str):
                assert (column.min, column.max) == (min(values), max(values)), name
