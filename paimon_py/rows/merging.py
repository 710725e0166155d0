"""The decision of a merge: rows of a table beside those of one block of its source.

Source: Java `MergeIntoPaimonTable`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from paimon_py.codec.columns import Ints, Mask, from_numpy, numpy_values
from paimon_py.errors import UsageError
from paimon_py.rows.clauses import Clause, Clauses
from paimon_py.rows.decide import DELETE, UPDATE, Decision, with_values
from paimon_py.rows.probe import Probe
from paimon_py.rows.source import Source
from paimon_py.rows.values import SOURCE, Condition
from paimon_py.spec.schema import TableSchema

_INSERT_ROWS = 65_536


class MergeBlock:
    """One pass of a merge: an `Operation`.

    Memory: the block, its keys, and a flag for each of them.
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
        self._seen = np.zeros(len(self._probe.counts), np.bool_)

    def decide(self, batch: pa.RecordBatch) -> Decision:
        """What becomes of rows.

        Raises: UsageError if two rows of the source want to change one row.
        """
        keys = [batch.column(name) for name in self._clauses.on]
        groups = self._probe.find(keys)
        found = np.flatnonzero(groups >= 0)
        self._seen[groups[found]] = True
        actions = np.zeros(batch.num_rows, np.int8)
        matches = np.full(batch.num_rows, -1, np.int64)
        if self._clauses.changes_matched and len(found):
            self._require_one(groups[found])
            matches[found] = self._probe.firsts[groups[found]]
            clauses = self._clauses.matched_delete, self._clauses.matched_update
            self._decide(actions, found, batch, matches[found], clauses)
        if self._clauses.changes_unmatched:
            apart = groups < 0
            own = self._source.in_block(self._number, keys)
            rest = np.flatnonzero(apart if own is None else apart & own)
            clauses = self._clauses.by_source_delete, self._clauses.by_source_update
            self._decide(actions, rest, batch, None, clauses)
        return Decision(actions, matches)

    def updated(self, batch: pa.RecordBatch, matches: Ints | None) -> pa.RecordBatch:
        """Rows as they are after the merge."""
        assert matches is not None
        known, alone = np.flatnonzero(matches >= 0), np.flatnonzero(matches < 0)
        if not len(alone):
            return self._from_source(batch, matches)
        if not len(known):
            return self._from_table(batch)
        parts = [self._from_source(_taken(batch, known), matches[known]), self._from_table(_taken(batch, alone))]
        order = np.argsort(np.concatenate([known, alone]), kind="stable")
        arrays = [pa.concat_arrays(columns).take(_index(order)) for columns in zip(*parts, strict=True)]
        return pa.RecordBatch.from_arrays(arrays, schema=parts[0].schema)

    def inserts(self) -> Iterator[pa.RecordBatch]:
        """Rows of the source that no row of the table has the key of.

        Raises: UsageError if two of them have the same key where that may not be.
        """
        clause = self._clauses.insert
        if clause is None:
            return
        groups = self._probe.groups
        seen = np.append(self._seen, False)
        rows = np.flatnonzero(~seen[groups])
        if clause.condition is not None:
            rows = rows[self._holds(clause.condition, None, _taken(self._rows, rows))]
        if self._clauses.unique:
            self._require_distinct(rows)
        for start in range(0, len(rows), _INSERT_ROWS):
            part = _taken(self._rows, rows[start : start + _INSERT_ROWS])
            columns = self._clauses.theirs.columns(None, part)
            made = {each.field.name: each.value(columns, part.num_rows) for each in clause.values}
            yield pa.RecordBatch.from_arrays(list(made.values()), names=list(made))

    def _decide(
        self,
        actions: np.ndarray[tuple[int], np.dtype[np.int8]],
        rows: Ints,
        batch: pa.RecordBatch,
        matches: Ints | None,
        clauses: tuple[Clause | None, Clause | None],
    ) -> None:
        """Note what becomes of some rows of a batch, by a clause that deletes and one that sets values."""
        deleting, setting = clauses
        for clause, action in ((setting, UPDATE), (deleting, DELETE)):
            if clause is None:
                continue
            if clause.condition is None:
                actions[rows] = action
                continue
            theirs = None if matches is None else self._picked(clause.condition.names, matches)
            actions[rows[self._holds(clause.condition, _taken(batch, rows), theirs)]] = action

    def _holds(self, condition: Condition, target: pa.RecordBatch | None, source: pa.RecordBatch | None) -> Mask:
        mask: Mask = numpy_values(condition.mask(self._clauses.both.columns(target, source)))
        return mask

    def _from_source(self, batch: pa.RecordBatch, matches: Ints) -> pa.RecordBatch:
        clause = self._clauses.matched_update
        assert clause is not None
        names: frozenset[str] | None = frozenset()
        for each in clause.values:
            names = None if names is None or each.names is None else names | each.names
        columns = self._clauses.both.columns(batch, self._picked(names, matches))
        return with_values(self._schema, batch, clause.values, columns)

    def _from_table(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        clause = self._clauses.by_source_update
        assert clause is not None
        return with_values(self._schema, batch, clause.values, self._clauses.ours.columns(batch, None))

    def _picked(self, names: frozenset[str] | None, rows: Ints) -> pa.RecordBatch | None:
        """Rows of the source, with the columns that some names in a scope mean; None: with all."""
        if names is None:
            return _taken(self._rows, rows)
        wanted = [name for name in self._rows.schema.names if f"{SOURCE}.{name}" in names]
        return _taken(self._rows.select(wanted), rows) if wanted else None

    def _require_one(self, groups: Ints) -> None:
        twice = groups[self._probe.counts[groups] > 1]
        if len(twice):
            raise UsageError(
                f"{int(self._probe.counts[twice[0]])} rows of the source want to change the row with"
                f" {self._shown(int(self._probe.firsts[twice[0]]))}; leave one of them. Nothing was changed"
            )

    def _require_distinct(self, rows: Ints) -> None:
        groups = self._probe.groups[rows]
        counts = np.bincount(groups[groups >= 0], minlength=len(self._seen))
        twice = np.flatnonzero(counts > 1)
        if len(twice):
            raise UsageError(
                f"the source has {int(counts[twice[0]])} rows with {self._shown(int(self._probe.firsts[twice[0]]))};"
                " leave one of them. Nothing was changed"
            )

    def _shown(self, row: int) -> str:
        pairs: Sequence[tuple[str, pa.Array]] = list(zip(self._clauses.on, self._keys, strict=True))
        return ", ".join(f"{name}={column[row].as_py()!r}" for name, column in pairs)


def _taken(batch: pa.RecordBatch, rows: Ints) -> pa.RecordBatch:
    if len(rows) == batch.num_rows and (not len(rows) or bool((rows == np.arange(len(rows))).all())):
        return batch
    return batch.take(_index(rows))


def _index(rows: Ints) -> pa.Array:
    return from_numpy(rows, pa.int64())
