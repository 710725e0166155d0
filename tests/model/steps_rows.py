"""Steps that change single rows: delete, update, upsert, merge, also beside others."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
from model.row_model import condition
from model.table_life import ARROW

from paimon_py import CommitConflictError, UsageError, col


def delete(life, rng):
    table = life.current(rng)
    asked = condition(rng, list(life.known(table)))
    call = lambda: table.delete(asked.asked(rng))  # noqa: E731
    if not life.mode.deletable:
        with life.refused(UsageError):
            call()
        return
    hit = [row for row in life.content.all() if asked.holds(row)]
    done = answered(life, table, call, hit)
    if done is None:
        return
    assert (done.deleted, done.updated, done.inserted) == (len(hit), 0, 0)
    assert (done.snapshot_id is None) == (not hit)
    life.content.remove(asked.holds)
    life.wrote([("-D", row) for row in hit])


def answered(life, table, call, hit, inserted=()):
    """The result of an operation that changes rows; None if their partitions are closed to writers."""
    touched = {row.get("p") for row in [*hit, *inserted]}
    if life.closed(table.schema, touched):
        with life.refused(UsageError, CommitConflictError, must=life.mode.keyed or bool(inserted)):
            done = call()
        return None if life.was_refused else done
    return call()


def setting(life, rng, columns):
    """Values for columns, and what they make of a row."""
    names = [name for name in columns if name not in ("p", "k")]
    values, made = {}, {}
    for name in rng.sample(names, rng.choice([1, 1, 2])):
        kind = rng.choice(["literal", "literal", "null", "function", "column"])
        if kind == "null":
            values[name], made[name] = None, lambda row: None
        elif kind == "function" and name != "v":
            values[name] = lambda rows, name=name: pc.add(rows[name], pa.scalar(1, rows.schema.field(name).type))
            made[name] = lambda row, name=name: None if row.get(name) is None else row[name] + 1
        elif kind == "column":
            values[name], made[name] = col(name), lambda row, name=name: row.get(name)
        else:
            value = life.value(rng, name)
            values[name], made[name] = value, lambda row, value=value: value
    return values, lambda row: {**row, **{name: function(row) for name, function in made.items()}}


def kept_by_partial(life, hit, made):
    """Whether a partial update would keep what a NULL replaces."""
    if life.mode.engine != "partial-update":
        return False
    return any(made(row)[name] is None and row.get(name) is not None for row in hit for name in row)


def update(life, rng):
    table = life.current(rng)
    change(life, rng, table, *setting(life, rng, life.known(table)))


def update_beside(life, rng):
    """Others write while an update is evaluated: it takes effect as if it came after them."""
    if not life.mode.updatable:
        return
    table, other = life.current(rng), life.opened()
    pairs = life.some(rng, other, rng.choice([1, 4, 12]))
    clock = []

    def meanwhile(rows):
        if not clock:
            clock.append(life.clock.millis())
            life.try_write(lambda: other.write_arrow(life.arrow(other, pairs)), other, pairs)
        return pc.add(rows["x"], 1.0)

    asked = condition(rng, list(life.known(table)))
    before = [row for row in life.content.all() if asked.holds(row)]
    shut = life.closed(table.schema, {row.get("p") for row in before} | life.partitions(pairs))
    if shut:
        return
    done = table.update(asked.asked(rng), {"x": meanwhile})
    if clock:
        life.took(pairs)
    made = lambda row: {**row, "x": None if row.get("x") is None else row["x"] + 1}  # noqa: E731
    hit = [row for row in life.content.all() if asked.holds(row)]
    assert done.updated == len(hit), f"updated {done.updated} in {done.rounds} rounds, not {len(hit)}"
    life.content.change(asked.holds, made)
    life.wrote([("+U", row) for row in hit])


def change(life, rng, table, values, made):
    asked = condition(rng, list(life.known(table)))
    call = lambda: table.update(asked.asked(rng), values)  # noqa: E731
    if not life.mode.updatable:
        with life.refused(UsageError):
            call()
        return
    hit = [row for row in life.content.all() if asked.holds(row)]
    if kept_by_partial(life, hit, made):
        with life.refused(UsageError):
            call()
        return
    done = answered(life, table, call, hit)
    if done is None:
        return
    assert (done.deleted, done.updated, done.inserted) == (0, len(hit), 0)
    life.content.change(asked.holds, made)
    life.wrote([("+U", row) for row in hit])


def upsert(life, rng):
    """By the primary key, or by columns that are given."""
    table = life.current(rng)
    if life.mode.keyed and rng.random() < 0.5:
        pairs = [("+I", row) for _, row in life.some(rng, table)]
        data = life.arrow(table, pairs)
        if not life.mode.updatable:
            with life.refused(UsageError):
                table.upsert(data)
            return
        done = life.try_write(lambda: table.upsert(data), table, pairs)
        if done is not None:
            life.took(pairs)
        return
    on = list(life.key) or (["p", "k"] if life.mode.parted else ["k"])
    rows = [life.row(rng, life.known(table)) for _ in range(rng.choice([1, 4, 10]))]
    if rng.random() < 0.8:
        rows = list({tuple(row[name] for name in on): row for row in rows}.values())
    source = Source(rows, on, life.known(table))
    clauses = {"when_matched_update": Set(None, None), "when_not_matched_insert": Set(None, None)}
    run_merge(life, table, source, clauses, lambda data: table.upsert(data, on=on), unique=True)


# -- merge ---


class Source:
    """Rows of another table, some columns of which find rows."""

    def __init__(self, rows, on, columns):
        self.rows, self.on = rows, on
        self.columns = columns

    def arrow(self):
        return pa.table({name: pa.array([row[name] for row in self.rows], ARROW[text]) for name, text in self.columns.items()})

    def at(self, row):
        """What finds a row; None if that is nothing."""
        values = tuple(row.get(name) for name in self.on)
        return None if None in values else values


class Set:
    """Values to set where a condition holds; every column of the source if none are given."""

    def __init__(self, test, values):
        self.test, self.values = test, values

    def asked(self):
        values = True if self.values is None else {name: text for name, (text, _) in self.values.items()}
        return values if self.test is None else (self.test[0], values)

    def applies(self, target, source):
        return self.test is None or self.test[1](target, source) is True

    def made(self, target, source, fixed):
        if self.values is None:
            return {**target, **{name: value for name, value in source.items() if name not in fixed}}
        return {**target, **{name: function(target, source) for name, (_, function) in self.values.items()}}


def merge(life, rng):
    """A merge with random clauses."""
    table = life.current(rng)
    columns = life.known(table)
    whole = list(life.key) or (["p", "k"] if life.mode.parted else ["k"])
    on = rng.choice([whole, whole, whole, ["k"], ["v"]])
    inserts = on == whole and rng.random() < 0.7
    names = {name: columns[name] for name in columns if name in on or name not in ("p", "k")}
    rows = [life.row(rng, names) for _ in range(rng.choice([1, 5, 15]))]
    if rng.random() < 0.8:
        rows = list({tuple(row[name] for name in on): row for row in rows}.values())
    source = Source(rows, on, names)
    clauses = drawn(rng, columns, inserts=inserts, deletes=life.mode.deletable)
    asked = {name: clause.asked() if isinstance(clause, Set) else clause[0] for name, clause in clauses.items()}
    unique = life.mode.keyed and set(on) == set(life.key)
    run_merge(life, table, source, clauses, lambda data: table.merge(data, on, **asked), unique=unique)


def drawn(rng, columns, *, inserts, deletes):
    found = {}
    if rng.random() < 0.7:
        found["when_matched_update"] = Set(test_of(rng, ("source", "target")), rng.choice([None, update_values(rng)]))
    if deletes and rng.random() < 0.4:
        found["when_matched_delete"] = test_of(rng, ("source", "target"))
        if "when_matched_update" not in found and rng.random() < 0.5:
            found["when_matched_delete"] = (True, lambda one, two: True)
    if deletes and rng.random() < 0.2:
        found["when_not_matched_by_source_delete"] = test_of(rng, ("target",))
    if rng.random() < 0.2:
        found["when_not_matched_by_source_update"] = Set(test_of(rng, ("target",)), {"v": ("b", lambda one, two: "b")})
    if inserts:
        found["when_not_matched_insert"] = Set(test_of(rng, ("source",)), None)
    found = {name: clause for name, clause in found.items() if clause is not None}
    return found or {"when_matched_update": Set(None, None)}


def update_values(rng):
    choices = {
        "v": [("source.v", lambda one, two: two.get("v")), ("ab", lambda one, two: "ab")],
        "n": [(7, lambda one, two: 7), (col("target", "n"), lambda one, two: one.get("n"))],
        "x": [(col("source", "x"), lambda one, two: two.get("x")), (None, lambda one, two: None)],
    }
    return {name: rng.choice(choices[name]) for name in rng.sample(list(choices), rng.choice([1, 2]))}


def test_of(rng, sides):
    """A condition on one side, as a text and as what it means."""
    if rng.random() < 0.4 and len(sides) > 1:
        return None
    side = rng.choice(sides)
    made = condition(rng, ["v", "n", "x"], depth=0)
    name = made.text.split(" ")[0]
    text = f"{side}.{made.text}"
    assert name in ("v", "n", "x")
    return text, (lambda one, two: made.truth(one if side == "target" else two))


test_of.__test__ = False


def run_merge(life, table, source, clauses, call, *, unique):
    data = source.arrow()
    if not life.mode.updatable:
        with life.refused(UsageError):
            call(data)
        return
    outcome = merged(life, source, clauses, unique=unique)
    if outcome is None:
        with life.refused(UsageError):
            call(data)
        return
    kept, hit, updated, deleted, inserted = outcome
    done = answered(life, table, lambda: call(data), hit, inserted)
    if done is None:
        return
    assert (done.deleted, done.updated, done.inserted) == (deleted, updated, len(inserted))
    if life.key:
        life.content.rows = {life.content.at(row): row for row in [*kept, *inserted]}
    else:
        life.content.rows = [*kept, *inserted]
    life.wrote([("+U", row) for row in [*hit, *inserted]])


def merged(life, source, clauses, *, unique):
    """What a merge makes of all rows, or None where it is refused: (rows, those touched, updated, deleted, inserted)."""
    groups = {}
    for row in source.rows:
        groups.setdefault(source.at(row), []).append(row)
    groups.pop(None, None)
    update, remove = clauses.get("when_matched_update"), clauses.get("when_matched_delete")
    alone = clauses.get("when_not_matched_by_source_update"), clauses.get("when_not_matched_by_source_delete")
    kept, hit, seen, updated, deleted = [], [], set(), 0, 0
    for row in life.content.all():
        at = source.at(row)
        others = groups.get(at, [])
        if others:
            seen.add(at)
            if len(others) > 1 and (update or remove):
                return None
        setting, removing = (update, remove) if others else alone
        other = others[0] if others else None
        if removing is not None and removing[1](row, other) is True:
            hit.append(row)
            deleted += 1
        elif setting is not None and setting.applies(row, other):
            made = setting.made(row, other, source.on)
            if kept_by_partial(life, [row], lambda _, made=made: made):
                return None
            hit.append(row)
            kept.append(made)
            updated += 1
        else:
            kept.append(row)
    inserted = []
    if clauses.get("when_not_matched_insert") is not None:
        clause = clauses["when_not_matched_insert"]
        inserted = [row for row in source.rows if source.at(row) not in seen and clause.applies(None, row)]
        found = [source.at(row) for row in inserted if source.at(row) is not None]
        if unique and len(set(found)) < len(found):
            return None
    return kept, hit, updated, deleted, inserted
