"""What a table holds, as dictionaries and lists: rows by key, or all rows of a table without keys.

Rows are dicts that are never changed. Nothing here knows how the package works.
"""

from __future__ import annotations

from collections import Counter

import msgspec

from paimon_py import col


class Waiting(msgspec.Struct):
    """Rows that no reader sees yet: their partition, and (kind, row)."""

    partition: object
    rows: list


class Content:
    """The rows of a table. `key`: the columns of its primary key; `waits`: rows are seen only once published."""

    def __init__(self, key, engine, waits):
        self.key = key
        self.engine = engine
        self.waits = waits
        self.rows = {} if key else []
        self.waiting = []

    def all(self):
        """What a reader should find."""
        return list(self.rows.values()) if self.key else list(self.rows)

    def at(self, row):
        return tuple(row[name] for name in self.key)

    def add(self, changes):
        """(kind, row) pairs that were committed, in their order."""
        if self.waits:
            parts = {}
            for kind, row in changes:
                parts.setdefault(row.get("p"), []).append((kind, row))
            self.waiting += [Waiting(partition, rows) for partition, rows in parts.items()]
        else:
            self.apply(changes)

    def apply(self, changes):
        if not self.key:
            self.rows += [row for _, row in changes]
            return
        for kind, row in changes:
            merged = self.merged(self.rows.get(self.at(row)), kind, row)
            if merged is None:
                self.rows.pop(self.at(row), None)
            else:
                self.rows[self.at(row)] = merged

    def merged(self, old, kind, new):
        """What the merge engine makes of a row that is there and one that comes."""
        if self.engine == "deduplicate":
            return None if kind in ("-D", "-U") else new
        if old is None:
            return new
        if self.engine == "first-row":
            return old
        known = {**old, **{name: value for name, value in new.items() if value is not None}}
        if "p" in old:
            known["p"] = old["p"]
        if self.engine == "aggregation":
            for name, function in (("n", sum), ("x", max)):
                values = [row[name] for row in (old, new) if row.get(name) is not None]
                known[name] = function(values) if values else None
        return known

    def publish(self, matches=lambda partition: True):
        """Rows that waited become visible, in the order of their commits."""
        for one in self.waiting:
            if matches(one.partition):
                self.apply(one.rows)
        self.waiting = [one for one in self.waiting if not matches(one.partition)]

    def remove(self, holds):
        """Rows for which `holds` go; returns how many."""
        before = len(self.rows)
        if self.key:
            self.rows = {key: row for key, row in self.rows.items() if not holds(row)}
        else:
            self.rows = [row for row in self.rows if not holds(row)]
        return before - len(self.rows)

    def change(self, holds, made):
        """Rows for which `holds` become `made(row)`; returns how many."""
        hit = [row for row in self.all() if holds(row)]
        if self.key:
            self.rows.update((self.at(row), made(row)) for row in hit)
        else:
            self.rows = [made(row) if holds(row) else row for row in self.rows]
        return len(hit)

    def empty(self, matches):
        """Partitions are replaced: what they hold goes, what waits in them too."""
        self.remove(lambda row: matches(row.get("p")))
        self.waiting = [one for one in self.waiting if not matches(one.partition)]


def counted(rows, names):
    """A bag of rows: how often each occurs."""
    return Counter(tuple(row.get(name) for name in names) for row in rows)


def difference(found, wanted):
    """What two bags do not have in common, as a text; '' if they are equal."""
    if found == wanted:
        return ""
    return f"too much: {sorted(map(repr, (found - wanted).elements()))}, missing: {sorted(map(repr, (wanted - found).elements()))}"


# -- conditions: SQL text, the same as a predicate, and what it means for a row: True, False or None ---


class Condition(msgspec.Struct):
    text: str
    predicate: object
    truth: object

    def holds(self, row):
        return self.truth(row) is True

    def asked(self, rng):
        return self.text if rng.random() < 0.6 else self.predicate


def condition(rng, names, depth=2, columns=True):
    """A random condition over some of the columns. `columns`: these may be compared with each other."""
    if depth and rng.random() < 0.45:
        one, two = condition(rng, names, depth - 1, columns), condition(rng, names, depth - 1, columns)
        shape = rng.choice(["and", "or", "not"])
        if shape == "and":
            return Condition(f"({one.text} AND {two.text})", one.predicate & two.predicate, lambda row: _and(one.truth(row), two.truth(row)))
        if shape == "or":
            return Condition(
                f"({one.text} OR {two.text})", one.predicate | two.predicate,
                lambda row: _not(_and(_not(one.truth(row)), _not(two.truth(row)))),
            )  # fmt: skip
        return Condition(f"NOT ({one.text})", ~one.predicate, lambda row: _not(one.truth(row)))
    numbers = [name for name in names if name != "v"]
    if columns and len(numbers) > 1 and rng.random() < 0.15:
        return _pair_leaf(rng, *rng.sample(numbers, 2))
    name = rng.choice(names)
    return _text_leaf(rng, name) if name == "v" else _number_leaf(rng, name)


def _number_leaf(rng, name):
    ranges = {"p": 3, "k": 16, "n": 60, "x": 8}
    low = rng.randrange(ranges.get(name, 10))
    kind = rng.choice(["<", ">=", "=", "!=", "in", "between", "null", "not null"])
    there = col(name)
    if kind == "null":
        return Condition(f"{name} IS NULL", there.is_null(), lambda row: row.get(name) is None)
    if kind == "not null":
        return Condition(f"{name} IS NOT NULL", ~there.is_null(), lambda row: row.get(name) is not None)
    if kind == "in":
        some = [low, low + 3, 1]
        return Condition(f"{name} IN ({low}, {low + 3}, 1)", there.isin(some), _known(name, lambda value: value in some))
    if kind == "between":
        return Condition(f"{name} BETWEEN {low} AND {low + 5}", there.between(low, low + 5), _known(name, lambda value: low <= value <= low + 5))
    made = {"<": there < low, ">=": there >= low, "=": there == low, "!=": there != low}[kind]
    means = {"<": lambda v: v < low, ">=": lambda v: v >= low, "=": lambda v: v == low, "!=": lambda v: v != low}[kind]
    return Condition(f"{name} {kind} {low}", made, _known(name, means))


def _pair_leaf(rng, one, two):
    kind = rng.choice(["<", ">=", "="])
    left, right = col(one), col(two)
    made = {"<": left < right, ">=": left >= right, "=": left == right}[kind]

    def truth(row):
        a, b = row.get(one), row.get(two)
        if a is None or b is None:
            return None
        return {"<": a < b, ">=": a >= b, "=": a == b}[kind]

    return Condition(f"{one} {kind} {two}", made, truth)


def _text_leaf(rng, name):
    word = rng.choice(["", "a", "b", "ab", "zz"])
    there = col(name)
    choices = [
        Condition(f"{name} = '{word}'", there == word, _known(name, lambda value: value == word)),
        Condition(f"{name} <> '{word}'", there != word, _known(name, lambda value: value != word)),
        Condition(f"{name} LIKE '{word}%'", there.starts_with(word), _known(name, lambda value: value.startswith(word))),
        Condition(f"{name} IN ('{word}', 'b')", there.isin([word, "b"]), _known(name, lambda value: value in (word, "b"))),
        Condition(f"{name} IS NULL", there.is_null(), lambda row: row.get(name) is None),
    ]
    return rng.choice(choices)


def _known(name, means):
    return lambda row: None if row.get(name) is None else means(row[name])


def _and(one, two):
    if one is False or two is False:
        return False
    return None if one is None or two is None else True


def _not(one):
    return None if one is None else not one
