"""The decisions of a merge: rows of a table against one block of its source.

Source: Java `MergeIntoPaimonTable`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from paimon_py.codec.columns import Ints, Mask, from_numpy, numpy_values
from paimon_py.codec.python_values import value_text
from paimon_py.errors import UsageError
from paimon_py.rows.clauses import Clause, Clauses
from paimon_py.rows.decide import DELETE, UPDATE, Decision, with_values
from paimon_py.rows.matches import Probe
from paimon_py.rows.source import Source
from paimon_py.rows.values import SOURCE, Condition
from paimon_py.spec.schema import TableSchema

_INSERT_ROWS = 65_536


class MergeBlock:
    """One pass of a merge: an `Operation`.

    Memory: the block, its keys, and `seen`, a flag per key: whether a row of the table has it.
    """

    def __init__(self, schema: TableSchema, clauses: Clauses, source: Source, number: int) -> None:
        self.names = frozenset(clauses.on) | clauses.condition_names
        self._schema = schema
        self._clauses = clauses
        self._source = source
        self._number = number
        self._rows = source.block(number)
        self._keys = source.keys(self._rows)
        self._probe = Probe(self._keys)
        self.seen: Mask = np.zeros(len(self._probe.counts), np.bool_)
        needs_one = bool(clauses.matched and not clauses.takes_any_match) or (clauses.unique and bool(clauses.inserts))
        self.adds_rows = bool(clauses.inserts)
        self.inserts_last = source.blocks > 1 and set(clauses.on) != set(schema.primary_keys)
        self.is_doubtful = needs_one and bool((self._probe.counts > 1).any())

    @property
    def rows(self) -> pa.RecordBatch:
        """The source rows of the block."""
        return self._rows

    @property
    def keys(self) -> pa.RecordBatch:
        """The keys of the source rows, with the names and types of the table."""
        return pa.RecordBatch.from_arrays(self._keys, names=list(self._clauses.on))

    @property
    def seen_keys(self) -> pa.RecordBatch:
        """The keys of the source that rows of the table have, each once."""
        return _take(self.keys, self._probe.firsts[np.flatnonzero(self.seen)])

    def decide(self, batch: pa.RecordBatch) -> Decision:
        """Decide on rows.

        Raises: UsageError if two source rows would change the same row.
        """
        keys = [batch.column(name) for name in self._clauses.on]
        groups = self._probe.find(keys)
        found = np.flatnonzero(groups >= 0)
        self.seen[groups[found]] = True
        decision = Decision(
            np.zeros(batch.num_rows, np.int8), np.full(batch.num_rows, -1, np.int64), np.zeros(batch.num_rows, np.int64)
        )
        assert decision.matches is not None
        if self._clauses.matched and len(found):
            self._require_one(groups[found])
            decision.matches[found] = self._probe.firsts[groups[found]]
            self._decide(decision, found, batch, self._clauses.matched)
        if self._clauses.unmatched:
            apart = groups < 0
            own = self._source.in_block(self._number, keys)
            rest = np.flatnonzero(apart if own is None else apart & own)
            self._decide(decision, rest, batch, self._clauses.unmatched)
        return decision

    def update(self, batch: pa.RecordBatch, decision: Decision) -> pa.RecordBatch:
        """Rows after the merge."""
        matches, choices = decision.matches, decision.choices
        assert matches is not None and choices is not None
        is_known = matches >= 0
        places, parts = [], []
        for clauses, mask in ((self._clauses.matched, is_known), (self._clauses.unmatched, ~is_known)):
            for number, clause in enumerate(clauses):
                rows = np.flatnonzero(mask & (choices == number))
                if len(rows):
                    places.append(rows)
                    parts.append(self._set(clause, _take(batch, rows), matches[rows]))
        if len(parts) == 1:
            return parts[0]
        order = np.argsort(np.concatenate(places), kind="stable")
        arrays = [pa.concat_arrays(columns).take(_index(order)) for columns in zip(*parts, strict=True)]
        return pa.RecordBatch.from_arrays(arrays, schema=parts[0].schema)

    def check(self) -> None:
        """Check whether the new rows can be inserted.

        Raises: UsageError if two of them have the same key and keys must be unique.
        """
        self._new_rows()

    def inserts(self) -> Iterator[pa.RecordBatch]:
        """The source rows whose key no row of the table has.

        Raises: as `check`.
        """
        for clause, rows in self._new_rows():
            assert clause.values is not None
            for start in range(0, len(rows), _INSERT_ROWS):
                part = _take(self._rows, rows[start : start + _INSERT_ROWS])
                columns = self._clauses.theirs.columns(None, part)
                made = {each.field.name: each.value(columns, part.num_rows) for each in clause.values}
                yield pa.RecordBatch.from_arrays(list(made.values()), names=list(made))

    def _new_rows(self) -> list[tuple[Clause, Ints]]:
        """The source rows to insert, by the clause that inserts them."""
        seen = np.append(self.seen, False)
        rest = np.flatnonzero(~seen[self._probe.groups])
        chosen = []
        for clause in self._clauses.inserts:
            rows = rest
            if clause.condition is not None:
                holds = self._holds(clause.condition, None, _take(self._rows, rest))
                rows, rest = rest[holds], rest[~holds]
            chosen.append((clause, rows))
        if self._clauses.unique and chosen:
            rows = np.concatenate([rows for _, rows in chosen])
            self._require_distinct(rows)
            on = self._clauses.on
            if self._schema.primary_keys and any(self._schema.field(name).type.nullable for name in on):
                self._require_known(rows)
        return chosen

    def _require_known(self, rows: Ints) -> None:
        """Refuse new rows with NULL in their primary key, which would replace rows that they do not match."""
        if (self._probe.groups[rows] < 0).any():
            names = ", ".join(map(repr, self._clauses.on))
            raise UsageError(
                f"a source row has NULL in the primary key ({names}), which matches no row of the table: the inserted"
                " row would replace the one with this key. Write such rows with upsert"
            )

    def _decide(self, decision: Decision, rows: Ints, batch: pa.RecordBatch, clauses: Sequence[Clause]) -> None:
        """Decide on some rows of a batch, either all with a match or all without."""
        assert decision.matches is not None and decision.choices is not None
        for number, clause in enumerate(clauses):
            taken = rows
            if clause.condition is not None:
                matches = decision.matches[rows]
                theirs = self._pick(clause.condition.names, matches) if clauses is self._clauses.matched else None
                holds = self._holds(clause.condition, _take(batch, rows), theirs)
                taken, rows = rows[holds], rows[~holds]
            decision.actions[taken] = DELETE if clause.values is None else UPDATE
            decision.choices[taken] = number

    def _holds(self, condition: Condition, target: pa.RecordBatch | None, source: pa.RecordBatch | None) -> Mask:
        mask: Mask = numpy_values(condition.mask(self._clauses.both.columns(target, source)))
        return mask

    def _set(self, clause: Clause, batch: pa.RecordBatch, matches: Ints) -> pa.RecordBatch:
        """Rows with the values of a clause; a match of −1 means none."""
        assert clause.values is not None
        if matches[0] < 0:
            return with_values(self._schema, batch, clause.values, self._clauses.ours.columns(batch, None))
        names: frozenset[str] | None = frozenset()
        for each in clause.values:
            names = None if names is None or each.names is None else names | each.names
        columns = self._clauses.both.columns(batch, self._pick(names, matches))
        return with_values(self._schema, batch, clause.values, columns)

    def _pick(self, names: frozenset[str] | None, rows: Ints) -> pa.RecordBatch | None:
        """Source rows with the columns that the given scope names refer to; None: all columns."""
        if names is None:
            return _take(self._rows, rows)
        wanted = [name for name in self._rows.schema.names if f"{SOURCE}.{name}" in names]
        return _take(self._rows.select(wanted), rows) if wanted else None

    def _require_one(self, groups: Ints) -> None:
        twice = groups[self._probe.counts[groups] > 1]
        if len(twice) and not self._clauses.takes_any_match:
            raise UsageError(
                f"{int(self._probe.counts[twice[0]])} rows of the source want to change the row with"
                f" {self._row_text(int(self._probe.firsts[twice[0]]))}; keep one of them. Nothing was changed"
            )

    def _require_distinct(self, rows: Ints) -> None:
        groups = self._probe.groups[rows]
        counts = np.bincount(groups[groups >= 0], minlength=len(self._probe.counts))
        twice = np.flatnonzero(counts > 1)
        if len(twice):
            raise UsageError(
                f"the source has {int(counts[twice[0]])} rows with {self._row_text(int(self._probe.firsts[twice[0]]))};"
                " keep one of them. Nothing was changed"
            )

    def _row_text(self, row: int) -> str:
        pairs: Sequence[tuple[str, pa.Array]] = list(zip(self._clauses.on, self._keys, strict=True))
        return ", ".join(f"{name}={value_text(column, row)}" for name, column in pairs)


def _take(batch: pa.RecordBatch, rows: Ints) -> pa.RecordBatch:
    if len(rows) == batch.num_rows and (not len(rows) or bool((rows == np.arange(len(rows))).all())):
        return batch
    return batch.take(_index(rows))


def _index(rows: Ints) -> pa.Array:
    return from_numpy(rows, pa.int64())
