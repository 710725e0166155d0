"""Checks that a table accepts changes: its own keys, row kinds that its engine merges, deletes that win. Pure.

Source: Java `PartialUpdateMergeFunction`, `SequenceGenerator`; Java loses or merges such rows silently.
"""

from __future__ import annotations

from collections.abc import Collection

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from paimon_py.cdc.event import Change
from paimon_py.spec.bucket_mode import BucketMode, bucket_mode
from paimon_py.spec.engine_rules import removing_fields, sequence_groups
from paimon_py.spec.options import Options
from paimon_py.spec.schema import DELETE, ROW_KINDS, UPDATE_BEFORE, TableSchema
from paimon_py.write.align import KindRules, kind_rules

_REMOVING = ("partial-update", "aggregation")
BRINGS_BEFORE = "the row before brings it: ALTER TABLE … REPLICA IDENTITY FULL, or binlog_row_image=FULL, in the source"


class Fitting(msgspec.Struct, frozen=True):
    """The requirements of a primary-key table on changes.

    Attributes:
        rules: the row kinds that its merge engine accepts.
        keys: its primary key.
        all_of: columns that may not be NULL in rows of the kinds `losing`: such a row is older than all others.
        any_of: columns that may not all be NULL in rows of kind -D, which would change nothing.
        completes: row kinds for which the newest row of the key supplies missing values.
    """

    rules: KindRules
    keys: frozenset[str]
    all_of: tuple[str, ...] = ()
    losing: tuple[str, ...] = ()
    any_of: tuple[str, ...] = ()
    completes: tuple[str, ...] = ()

    def may_complete(self, kind: str, lacking: str | None = None) -> bool:
        """Whether the newest row of the key supplies what a row of a kind lacks: a column, or its sequence."""
        return kind in self.completes and lacking not in self.keys

    def refusal(self, change: Change) -> str | None:
        """The reason why the table accepts no row of the change; None if it does."""
        if set(change.keys) != self.keys:
            said = f"has the key {sorted(change.keys)}" if change.keys else "has no key"
            return (
                f"the event {said} and the table {sorted(self.keys)}: rows that differ in the source could become"
                f" one. If the table's key is right, pass it as Routes(keys={{{change.table!r}: (…)}}); else copy"
                " the table into one with the key of the source"
            )
        if self.rules.refused is None:
            return None
        takes_back = {UPDATE_BEFORE, DELETE} & {ROW_KINDS.index(kind) for kind, _ in change.rows}
        return self.rules.refused if takes_back - set(self.rules.dropped) else None

    def find_lost(self, kinds: Collection[str], columns: dict[str, pa.Array]) -> dict[int, str]:
        """The rows that would have no effect or sort too early, by position, with the reason."""
        found: dict[int, str] = {}
        kind = np.array(list(kinds), dtype=object)
        for name in self.all_of:
            for place in np.flatnonzero(np.isin(kind, self.losing) & _null(columns[name])).tolist():
                found.setdefault(place, _older(kind[place], name))
        if self.any_of:
            nothing = kind == "-D"
            for name in self.any_of:
                nothing &= _null(columns[name])
            for place in np.flatnonzero(nothing).tolist():
                found.setdefault(place, _older("-D", ", ".join(self.any_of)))
        return found


def fitting(schema: TableSchema) -> Fitting | None:
    """The requirements of a table; None for one without a primary key, which accepts all rows."""
    if not schema.primary_keys:
        return None
    options, rules = Options(schema.options), kind_rules(schema)
    engine, dropped = options.get_enum("merge-engine"), [ROW_KINDS[index] for index in rules.dropped]
    sequence = tuple(options.get_list("sequence.field"))
    losing = ("-D",) if engine == "deduplicate" else ("-U", "-D")  # the +U after a -U stands for both there
    groups = sequence_groups(schema.options) if engine == "partial-update" and "-D" not in dropped else ()
    removing = removing_fields(options)
    asked = [group for group in groups if not removing or set(group.fields) & set(removing)]
    return Fitting(
        rules, frozenset(schema.primary_keys), sequence, tuple(kind for kind in losing if kind not in dropped),
        tuple(name for group in asked for name in group.fields), _completes(schema, options),
    )  # fmt: skip


def _completes(schema: TableSchema, options: Options) -> tuple[str, ...]:
    """The value of `Fitting.completes`.

    Empty for postponed buckets: their rows are not visible before they are published, so the newest row is unknown.
    """
    engine = options.get_enum("merge-engine")
    if bucket_mode(schema) is BucketMode.POSTPONED:
        return ()
    if engine == "deduplicate":
        return ("-U", "-D")
    is_removed = engine in _REMOVING and options.get_bool(f"{engine}.remove-record-on-delete")
    return ("-D",) if is_removed else ()


def _null(column: pa.Array) -> npt.NDArray[np.bool_]:
    return np.asarray(column.is_null(), dtype=bool)


def _older(kind: str, names: str) -> str:
    return (
        f"a row of kind {kind} with NULL in the sequence field {names!r} is older than every row of its key and takes"
        f" back nothing; {BRINGS_BEFORE}"
    )
