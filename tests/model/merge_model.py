"""Merges: a source, clauses, and what they make of the rows of a table, row by row."""

from __future__ import annotations

import msgspec
import pyarrow as pa
from model.row_model import condition
from model.table_life import ARROW

from paimon_py import col

SIDES = ("source", "target")


class Source(msgspec.Struct, frozen=True):
    """Rows of another table, some columns of which find rows."""

    rows: list
    on: list
    columns: dict

    def arrow(self):
        return pa.table({name: pa.array([row[name] for row in self.rows], ARROW[text]) for name, text in self.columns.items()})

    def at(self, row):
        """What finds a row; None if that is nothing."""
        values = tuple(row.get(name) for name in self.on)
        return None if None in values else values


class Clause(msgspec.Struct, frozen=True):
    """A delete, or values by column as (what is asked, what it is for a target row and a source row).

    `test`: a condition and what it means, None for always; `values`: None for every column of the source.
    """

    test: object = None
    values: dict | None = None
    deletes: bool = False

    def asked(self):
        if self.deletes:
            return True if self.test is None else self.test[0]
        values = True if self.values is None else {name: text for name, (text, _) in self.values.items()}
        return values if self.test is None else (self.test[0], values)

    def applies(self, target, source):
        return self.test is None or self.test[1](target, source) is True

    def made(self, target, source, on):
        if self.values is None:
            return {**target, **{name: value for name, value in source.items() if name not in on}}
        return {**target, **{name: function(target, source) for name, (_, function) in self.values.items()}}


class Clauses(msgspec.Struct, frozen=True):
    """All clauses of a merge, in the order in which they are tried."""

    matched: list
    alone: list
    inserts: list

    def asked(self):
        """The arguments of a call."""
        found = {}
        for prefix, clauses in (("when_matched", self.matched), ("when_not_matched_by_source", self.alone)):
            for verb, deletes in (("delete", True), ("update", False)):
                found[f"{prefix}_{verb}"] = [clause.asked() for clause in clauses if clause.deletes == deletes]
        found["when_not_matched_insert"] = [clause.asked() for clause in self.inserts]
        return {name: one_or_list(given) for name, given in found.items() if given}

    @property
    def hides_some(self):
        """Whether a clause is never reached."""
        return any(clause.test is None for group in (self.matched, self.alone, self.inserts) for clause in group[:-1])

    @property
    def wants_one(self):
        """Whether it matters which row of the source matches."""
        first = self.matched[0] if self.matched else None
        return first is not None and not (first.deletes and first.test is None)


UPSERT = Clauses([Clause()], [], [Clause()])


def one_or_list(given):
    """A list is for several."""
    return given[0] if len(given) == 1 else given


def drawn(rng, *, inserts, deletes):
    """Random clauses."""
    matched, alone, added = [], [], []
    if deletes and rng.random() < 0.4:
        matched += [Clause(tested(rng, SIDES), deletes=True) for _ in range(rng.choice([1, 1, 2]))]
    if rng.random() < 0.7:
        matched += [Clause(tested(rng, SIDES), rng.choice([None, values(rng)])) for _ in range(rng.choice([1, 1, 2]))]
    if deletes and rng.random() < 0.2:
        alone.append(Clause(tested(rng, ("target",)), deletes=True))
    if rng.random() < 0.2:
        alone.append(Clause(tested(rng, ("target",)), {"v": ("b", lambda one, two: "b")}))
    if inserts:
        added += [Clause(tested(rng, ("source",))) for _ in range(rng.choice([1, 1, 2]))]
    return Clauses(matched or [Clause()] if not (alone or added) else matched, alone, added)


def values(rng):
    choices = {
        "v": [("source.v", lambda one, two: two.get("v")), ("ab", lambda one, two: "ab")],
        "n": [(7, lambda one, two: 7), (col("target", "n"), lambda one, two: one.get("n"))],
        "x": [(col("source", "x"), lambda one, two: two.get("x")), (None, lambda one, two: None)],
    }
    return {name: rng.choice(choices[name]) for name in rng.sample(list(choices), rng.choice([1, 2]))}


def tested(rng, sides):
    """A condition on one side or between both, as a text and as what it means; None for always."""
    if rng.random() < 0.25:
        return None
    if len(sides) > 1 and rng.random() < 0.3:
        name = rng.choice(["n", "x", "v"])
        return f"source.{name} > target.{name}", lambda one, two: larger(two.get(name), one.get(name))
    side = rng.choice(sides)
    made = condition(rng, ["v", "n", "x"], depth=0, columns=False)
    return f"{side}.{made.text}", lambda one, two: made.truth(one if side == "target" else two)


def larger(one, two):
    return None if one is None or two is None else one > two


class Outcome(msgspec.Struct):
    """All rows afterwards but the new ones; those that were touched, as they were; new ones; what was done."""

    kept: list
    hit: list
    inserted: list
    updated: int = 0
    deleted: int = 0


def merged(rows, source, clauses, *, unique, allowed):
    """What a merge makes of rows; None where it is refused. `allowed`: whether an old row may become a new one."""
    groups = {}
    for row in source.rows:
        groups.setdefault(source.at(row), []).append(row)
    groups.pop(None, None)
    done, seen = Outcome([], [], []), set()
    for row in rows:
        at = source.at(row)
        others = groups.get(at, [])
        if others:
            seen.add(at)
            if len(others) > 1 and clauses.wants_one:
                return None
        other = others[0] if others else None
        clause = next((one for one in (clauses.matched if others else clauses.alone) if one.applies(row, other)), None)
        if clause is None:
            done.kept.append(row)
            continue
        done.hit.append(row)
        if clause.deletes:
            done.deleted += 1
            continue
        made = clause.made(row, other, source.on)
        if not allowed(row, made):
            return None
        done.kept.append(made)
        done.updated += 1
    new = [row for row in source.rows if source.at(row) not in seen]
    done.inserted = [row for row in new if any(clause.applies(None, row) for clause in clauses.inserts)]
    found = [source.at(row) for row in done.inserted if source.at(row) is not None]
    return None if unique and len(set(found)) < len(found) else done
