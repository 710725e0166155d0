"""A table of two players whose rows are changed, looked up and indexed, beside what `pair.py` does.

    ("delete", tree)                            the rows that match
    ("update", tree, {column: value})
    ("upsert", rows, [column, …])               the columns that make the key, [] for the primary key
    ("merge", rows, [column, …], clauses)       "delete": tree over the source, "update": values or True, "insert": True,
                                                "rest": (tree, values), "rest deleted": tree, both over the table
    ("shared", rows, writers)                   one commit of several writers of ours; of one by Java
    ("sort", [column, …], strategy)             by us, whosever turn it is: Java's core cannot
    ("index",)                                  our rewrite of file indexes, likewise
    ("resize", buckets)                         our rescaling where the number is not an option, likewise
    ("look",)                                   both look up keys, we with one table object for the whole script
    ("ask", [tree, …])                          both filter

Java's core knows no operations on rows. A turn of Java decides on the rows that Java reads; then it writes rows of kind
−D and +U where there is a primary key, marks rows by number where there are deletion vectors, and elsewhere overwrites
the table with what is left.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import NamedTuple

import fastavro
import golden
import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
from filters import predicate
from pair import Pair
from values import arrow_rows, canonical_rows, difference, ours

GONE = object()
Decide = Callable[[dict], object]
"""A row's fate: None, GONE, or the row that takes its place."""


class Effect(NamedTuple):
    """What an operation does to the rows of a table."""

    gone: list[dict]
    left: list[dict]
    new: list[dict]


class RowPair(Pair):
    """With the actions above."""

    kept = None

    # -- ours -------------------------------------------------------------------------------------------------------

    def _types(self, columns: list | None = None) -> dict:
        return {name: golden.parse_type(kind) for name, kind in columns or self.columns()}

    def _typed(self, values: dict) -> dict:
        """Values of a script as pyarrow scalars."""
        table = self.table()
        row = arrow_rows(table.schema, self.columns(), [values])
        return {name: row[name][0] for name in values}

    def _source(self, rows: list[dict]) -> pa.Table:
        """Rows of a script, with the columns that the first one has."""
        table = arrow_rows(self.table().schema, self.columns(), rows)
        return table.select([name for name in table.column_names if name in rows[0]])

    def _delete_ours(self, tree: list) -> None:
        self.table().delete(predicate(tree, self._types()))

    def _update_ours(self, tree: list, values: dict) -> None:
        self.table().update(predicate(tree, self._types()), self._typed(values))

    def _upsert_ours(self, rows: list[dict], on: list[str]) -> None:
        self.table().upsert(self._source(rows), on=on or None)

    def _merge_ours(self, rows: list[dict], on: list[str], clauses: dict) -> None:
        types = self._types()
        asked: dict = {}
        if "delete" in clauses:
            asked["when_matched_delete"] = predicate(clauses["delete"], types, side="source")
        if "update" in clauses:
            values = clauses["update"]
            asked["when_matched_update"] = True if values is True else self._typed(values)
        if "insert" in clauses:
            asked["when_not_matched_insert"] = True
        if "rest" in clauses:
            tree, values = clauses["rest"]
            asked["when_not_matched_by_source_update"] = (predicate(tree, types, side="target"), self._typed(values))
        if "rest deleted" in clauses:
            asked["when_not_matched_by_source_delete"] = predicate(clauses["rest deleted"], types, side="target")
        self.table().merge(self._source(rows), on, **asked)

    def _shared_ours(self, rows: list[dict], writers: int) -> None:
        table = self.table()
        data = arrow_rows(table.schema, self.columns(), rows)
        numbers = table.writer_numbers(data, writers)
        changes = []
        for number in range(writers):
            with table.writer(share=(number, writers)) as writer:
                writer.write_arrow(data.filter(pa.compute.equal(numbers, number)))
                changes.append(writer.changes())
        table.commit(changes)

    def _sort_ours(self, columns: list[str], strategy: str) -> None:
        self.table().compact(full=True, order_by=columns, strategy=strategy)

    _sort_java = _sort_ours

    def _index_ours(self) -> None:
        self.table().rewrite_file_index()

    _index_java = _index_ours

    def _resize_ours(self, buckets: int) -> None:
        self.table().rescale(buckets)

    _resize_java = _resize_ours

    # -- Java's -----------------------------------------------------------------------------------------------------

    def _shared_java(self, rows: list[dict], writers: int) -> None:
        self.step("write", rows=rows)

    def _delete_java(self, tree: list) -> None:
        self._change(self._matching(tree, lambda row: GONE))

    def _update_java(self, tree: list, values: dict) -> None:
        self._change(self._matching(tree, lambda row: {**row, **values}))

    def _upsert_java(self, rows: list[dict], on: list[str]) -> None:
        if on:
            self._merge_java(rows, on, {"update": True, "insert": True})
        else:
            self.step("write", rows=rows)

    def _merge_java(self, rows: list[dict], on: list[str], clauses: dict) -> None:
        key_of = self._key(on)
        source = {key_of(row): row for row in rows}
        met = set()
        drops = self._holds(clauses.get("delete"))
        rest = clauses.get("rest")
        changes_rest, drops_rest = self._holds(rest and rest[0]), self._holds(clauses.get("rest deleted"))

        def decide(row: dict) -> object:
            key = key_of(row)
            if key in source:
                met.add(key)
                if drops(source[key]):
                    return GONE
                values = clauses.get("update")
                return None if values is None else {**row, **(source[key] if values is True else values)}
            if drops_rest(row):
                return GONE
            return {**row, **rest[1]} if changes_rest(row) else None

        self._change(decide, lambda: [row for key, row in source.items() if key not in met] if "insert" in clauses else [])

    def _key(self, on: list[str]) -> Callable[[dict], object]:
        """What is alike for rows that match; a NULL matches nothing."""
        types = self._types()
        return lambda row: object() if None in (key := [golden.canonical(row[name], types[name]) for name in on]) else json.dumps(key)

    def _holds(self, tree: list | None) -> Callable[[dict], bool]:
        """Whether a condition is true of a row, in the notation of the oracle; never, if there is none."""
        types = self._types()
        if tree is None:
            return lambda row: False
        asked = {name: types[name] for name in named(tree)}
        return lambda row: golden.matches({n: golden.canonical(row.get(n), t) for n, t in asked.items()}, tree, types) is True

    def _matching(self, tree: list, becomes: Callable[[dict], object]) -> Decide:
        holds = self._holds(tree)
        return lambda row: becomes(row) if holds(row) else None

    def _change(self, decide: Decide, added: Callable[[], list[dict]] = list) -> None:
        """Let Java bring about what is decided; `added` is asked when every row has been decided.

        Verbs on rows see all that was committed, also what readers see only after the next compaction.
        """
        table = self.table()
        effect = effect_of(self.step("read", options={"deletion-vectors.merge-on-read": "true"}), decide)
        more = added()
        if table.schema.primary_keys:
            rows = [*({**row, **self._left_out(), "_kind": "-D"} for row in effect.gone), *({**row, "_kind": "+U"} for row in effect.new), *more]
            if rows:
                self.step("write", rows=rows)
            return
        if table.options.get("deletion-vectors.enabled") == "true":
            if positions := self._positions(decide):
                self.step("deleteRows", positions=positions)
            if effect.new or more:
                self.step("write", rows=effect.new + more)
            return
        if effect.gone or effect.new:
            self._overwrite_java({}, effect.left + effect.new + more)
        elif more:
            self.step("write", rows=more)

    def _left_out(self) -> dict:
        """Columns that a −D does not tell where a deleted key would go on with them, whenever Java compacts."""
        schema = self.table().schema
        if schema.options.get("merge-engine") not in ("partial-update", "aggregation"):
            return {}
        told = (*schema.primary_keys, *schema.partition_keys)
        return {field.name: None for field in schema.fields if field.type.nullable and field.name not in told}

    def _positions(self, decide: Decide) -> dict[str, list[int]]:
        """{file: numbers of its living rows that go or change}."""
        dead = {
            name: set(vector["positions"])
            for entry in self.step("manifests")["index"] or []
            for name, vector in (entry["deletionVectors"] or {}).items()
        }
        found = {}
        for file in self.step("files"):
            name = file["fileName"]
            rows = physical_rows(next(self.path.rglob(name)), [column for column, _ in self.columns()])
            numbers = [n for n, row in enumerate(rows) if n not in dead.get(name, ()) and decide(row) is not None]
            if numbers:
                found[name] = numbers
        return found

    # -- both -------------------------------------------------------------------------------------------------------

    def _look_ours(self) -> None:
        columns = self.columns()
        table = self.table()
        names = table.schema.primary_keys
        if self.kept is None or self.kept.schema.id != table.schema.id:
            self.kept = table
        keys = [{name: row[name] for name in names} for row in self.step("read")][:15]
        keys += [{**key, names[-1]: other[names[-1]]} for key, other in zip(keys[:4], keys[::-1])]
        keys = list({json.dumps(key): key for key in keys}.values())
        theirs = canonical_rows(columns, [row for row in self.step("lookup", keys=keys) if row is not None])
        asked = arrow_rows(table.schema, columns, keys).select(names)
        mine = ours(columns, self.kept.lookup(asked))
        assert difference(columns, theirs, mine) is None, "we find other rows by their keys than Java"

    _look_java = _look_ours

    def _ask_ours(self, trees: list) -> None:
        self.check_filters(trees, self.agree())

    _ask_java = _ask_ours


def named(tree: list) -> set[str]:
    """The columns of a condition."""
    op, *rest = tree
    return set().union(*map(named, rest)) if op in ("and", "or", "not") else {rest[0]}


def effect_of(rows: Iterable[dict], decide: Decide) -> Effect:
    """What a decision on every row amounts to."""
    effect = Effect([], [], [])
    for row in rows:
        row = {name: value for name, value in row.items() if name != "_kind"}
        new = decide(row)
        if new is None:
            effect.left.append(row)
        elif new is GONE:
            effect.gone.append(row)
        else:
            effect.new.append(new)
    return effect


def physical_rows(path, columns: list[str]) -> list[dict]:
    """All rows of a data file, dead ones too. Only numbers and texts are sure to be in the oracle's notation."""
    if path.suffix == ".avro":
        with path.open("rb") as source:
            return [{name: value for name, value in row.items() if value is None or isinstance(value, int | str)} for row in fastavro.reader(source)]
    whole = pq.read_table(path) if path.suffix == ".parquet" else orc.read_table(path)
    return whole.select([name for name in columns if name in whole.column_names and plain(whole[name].type)]).to_pylist()


def plain(type_: pa.DataType) -> bool:
    return pa.types.is_integer(type_) or pa.types.is_string(type_)
