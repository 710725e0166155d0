"""Selects partitions: by the values of their keys, by a condition on the keys, or as serialized rows.

Source: format.md §15.5; Java `PartitionPredicate`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paimon_py.codec.binary_row import decode
from paimon_py.codec.columns import Mask, binary_array, from_numpy, numpy_values
from paimon_py.errors import UsageError
from paimon_py.expr.arrow import prepare
from paimon_py.expr.bind import all_of, any_of, bind, predicate_at
from paimon_py.expr.column import col
from paimon_py.expr.predicate import Constant, Predicate
from paimon_py.expr.prune import Bounds, may_match
from paimon_py.expr.references import columns_of
from paimon_py.lazy import lazy_property
from paimon_py.spec.data_file import Stats
from paimon_py.spec.manifest import ManifestFile
from paimon_py.spec.schema import TableSchema
from paimon_py.spec.types import Field

if TYPE_CHECKING:
    from paimon_py.expr.sql_intervals import Now

_LONG_MAX = (1 << 63) - 1


class PartitionChoice(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """A choice of partitions. Called with serialized partitions, it returns a mask of those that belong to it.

    `fields`: the partition keys. `predicate`: bound to the fields, true for chosen partitions. `rows`: the serialized
    chosen partitions, if known; then there is no predicate. `text`: the choice as the caller wrote it.
    """

    fields: tuple[Field, ...] = ()
    predicate: Predicate = Constant(True)
    rows: frozenset[bytes] | None = None
    text: str = ""

    @classmethod
    def of_rows(cls, rows: Iterable[bytes]) -> PartitionChoice:
        """The choice of the given serialized partitions."""
        return cls(rows=frozenset(rows))

    @classmethod
    def of_specs(cls, schema: TableSchema, specs: Sequence[Mapping[str, object]]) -> PartitionChoice:
        """The choice of partitions that match any of the specs; keys missing in a spec match any value, None is NULL.

        Raises: UsageError if a name is not a partition key, or a value does not fit its column.
        """
        for spec in specs:
            _check_names(schema, spec)
        fields = schema.partition_fields
        each = [all_of(_fit(fields, name, value) for name, value in spec.items()) for spec in specs]
        text = ", ".join(str(dict(spec)) for spec in specs)
        return cls(fields=fields, predicate=any_of(each), text=text)

    @classmethod
    def where(cls, schema: TableSchema, predicate: Predicate) -> PartitionChoice:
        """The choice of partitions for which a bound predicate is true; the predicate refers to partition keys only."""
        return cls(fields=schema.partition_fields, predicate=predicate)

    @property
    def is_all(self) -> bool:
        """Whether all partitions are chosen, whatever their values."""
        return self.rows is None and isinstance(self.predicate, Constant) and self.predicate.value is True

    def __call__(self, partitions: pa.Array) -> Mask:
        """A mask of the chosen partitions.

        Cost: one evaluation over all of them.
        """
        return self._test(partitions)

    def includes(self, partition: bytes) -> bool:
        """Whether a serialized partition is chosen. Cost: nothing, if all or none are."""
        if self.rows is not None:
            return partition in self.rows
        if isinstance(self.predicate, Constant):
            return self.predicate.value is True
        return bool(self._test(binary_array([partition])).all())

    def of_manifests(self, files: Sequence[ManifestFile]) -> Mask:
        """A mask of the manifests that may contain a chosen partition, by their partition statistics."""
        types = [field.type for field in self.fields]
        arity = len(types).to_bytes(4, "big")
        known = [
            at
            for at, file in enumerate(files)
            if file.partition_stats.min_values.startswith(arity)
            and len(file.partition_stats.null_counts or types) == len(types)
        ]
        keep: Mask = np.ones(len(files), np.bool_)
        if not known:
            return keep
        stats = [files[at].partition_stats for at in known]
        entries = [min(files[at].added_files + files[at].deleted_files, _LONG_MAX) for at in known]
        lows = decode([each.min_values for each in stats], types)
        highs = decode([each.max_values for each in stats], types)
        bounds = {}
        for slot, field in enumerate(self.fields):
            counts = [_null_count(each, slot, most) for each, most in zip(stats, entries, strict=True)]
            bounds[field.name] = Bounds(min=lows[slot], max=highs[slot], null_count=_counts(counts))
        keep[known] = may_match(self.predicate, bounds, _counts(entries))
        return keep

    @lazy_property
    def _test(self) -> Callable[[pa.Array], Mask]:
        if self.rows is not None:
            wanted = binary_array(sorted(self.rows))
            return lambda partitions: numpy_values(pc.is_in(partitions, value_set=wanted))
        if isinstance(self.predicate, Constant):
            value = self.predicate.value
            return lambda partitions: np.full(len(partitions), value)
        holds, names = prepare(self.predicate), [field.name for field in self.fields]
        types = [field.type for field in self.fields]
        return lambda partitions: numpy_values(holds(dict(zip(names, decode(partitions, types), strict=True))))


def choice_of(
    schema: TableSchema, verb: str, partitions: object, where: Predicate | str | None = None, now: Now | None = None
) -> PartitionChoice | None:
    """The choice by a verb's arguments `partitions=[{"month": 3}]` and `where`, both of which must match; None: all.

    Raises: UsageError for other values, an empty list or spec, a condition on other columns, and as `of_specs`.
    """
    chosen = None if partitions is None else PartitionChoice.of_specs(schema, _specs(verb, partitions))
    if where is None:
        return chosen
    predicate = predicate_at(where, now)
    others = sorted(columns_of(predicate) - set(schema.partition_keys))
    if others:
        keys = ", ".join(schema.partition_keys) or "none"
        raise UsageError(
            f"{verb}(where=…) chooses partitions, so it can only use partition keys ({keys}), not "
            f"{', '.join(others)}"
        )
    bound = bind(predicate, schema.partition_fields)
    return PartitionChoice.where(schema, bound if chosen is None else all_of([chosen.predicate, bound]))


def _specs(verb: str, partitions: object) -> Sequence[Mapping[str, object]]:
    given = () if isinstance(partitions, (str, Mapping)) or not isinstance(partitions, Sequence) else partitions
    if not given or not all(isinstance(partition, Mapping) and partition for partition in given):
        raise UsageError(f'{verb} takes a list of at least one partition, such as [{{"month": 3}}], not {partitions!r}')
    return given


def _check_names(schema: TableSchema, spec: Mapping[str, object]) -> None:
    unknown = ", ".join(repr(name) for name in spec if name not in schema.partition_keys)
    if unknown:
        keys = ", ".join(schema.partition_keys) or "none"
        raise UsageError(f"{unknown} is not a partition key of the table; its keys: {keys}")


def _fit(fields: Sequence[Field], name: str, value: object) -> Predicate:
    try:
        found = bind(col(name).is_null() if value is None else col(name) == value, fields)
    except UsageError as error:
        raise UsageError(f"partition value {name}={value!r} does not fit: {error}") from error
    if isinstance(found, Constant):
        raise UsageError(f"partition value {name}={value!r} does not fit: the column cannot hold it")
    return found


def _null_count(stats: Stats, slot: int, most: int) -> int | None:
    """The number of entries with NULL in a column; None if it is unknown or impossible."""
    count = stats.null_counts[slot] if stats.null_counts else None
    return count if count is not None and 0 <= count <= most else None


def _counts(values: Sequence[int | None]) -> pa.Array:
    numbers = np.array([0 if value is None else value for value in values], np.int64)
    return from_numpy(numbers, pa.int64(), np.array([value is not None for value in values], np.bool_))
