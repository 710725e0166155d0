"""Questions to the partial-update engine: is every outcome that of Java's rules, row by row?"""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest
from unit.lsm import engine_models as model

from paimon_py.errors import SchemaError, UsageError
from paimon_py.lsm.aggregates import base
from paimon_py.lsm.engines.lookup import Lookup
from paimon_py.lsm.engines.partial_update import PartialUpdate, Retracts
from paimon_py.lsm.groups import Groups
from paimon_py.spec.engine_rules import SequenceGroup

NAMES = ("a", "b", "g", "c", "h1", "s", "h2", "d", "k")
TYPES = {"s": pa.string(), "h2": pa.string(), "d": pa.list_(pa.int32())}
GROUPS = ((("g",), ("b", "c")), (("h1", "h2"), ("s", "d")))
FUNCTIONS = {"sum": model.Sum(), "last": model.LastNonNull()}


def folded(function):
    """An aggregator that applies a function of the model to one value after the other."""

    def aggregate(values, fold):
        results = []
        for start, end in zip(fold.starts.tolist(), fold.ends.tolist(), strict=True):
            held = None
            for value, action in zip(values[start:end].to_pylist(), fold.actions[start:end].tolist(), strict=True):
                if action == base.ADD:
                    held = function.agg(held, value)
                elif action == base.ADD_REVERSED:
                    held = function.agg_reversed(held, value)
                elif action == base.RETRACT:
                    held = function.retract(held, value)
                elif action == base.SET:
                    held = value
                elif action == base.CLEAR:
                    held = None
            results.append(held)
        return pa.array(results, values.type)

    return aggregate


def value_of(name, rand, nulls):
    if name == "k":
        return 7
    if rand.random() < nulls:
        return None
    if name == "d":
        return [rand.choice([None, 1, 2])] * rand.randrange(3)
    if name in ("s", "h2"):
        return rand.choice(["", "a", "b", "long enough for a word"])
    return rand.randrange(4)


def versions(rand, kinds, nulls, levels):
    """Random keys, each a list of versions, at most one of them on each of `levels`, the others on level 0."""
    keys = [
        [
            model.Row(
                {name: value_of(name, rand, nulls) for name in NAMES},
                rand.choice(kinds),
                100 * key + number,
            )
            for number in range(rand.choice([1, 1, 2, 3, 5, 9]))
        ]
        for key in range(rand.choice([1, 3, 12]))
    ]
    for key in keys:
        for level, row in zip(levels, rand.sample(key, len(key)), strict=False):
            row.level = level if rand.random() < 0.7 else 0
    return keys


def merged(engine, keys, rand, names=NAMES):
    """The engine's answer: a row per key as `model.Row`, from a window whose rows lie in any order and in pieces."""
    rows = [row for key in keys for row in key]
    place = rand.sample(range(len(rows)), len(rows))
    columns = {}
    for name in names:
        values = [None] * len(rows)
        for at, row in zip(place, rows, strict=True):
            values[at] = row.values[name]
        cut = rand.randrange(len(rows) + 1)
        kind = TYPES.get(name, pa.int64())
        columns[name] = pa.chunked_array([pa.array(values[:cut], kind), pa.array([None, *values[cut:]], kind)[1:]])
    for name, kind, attribute in (
        ("_VALUE_KIND", pa.int8(), "kind"),
        ("_SEQUENCE_NUMBER", pa.int64(), "sequence"),
        ("_LEVEL", pa.int32(), "level"),
    ):
        values = [0] * len(rows)
        for at, row in zip(place, rows, strict=True):
            values[at] = getattr(row, attribute)
        columns[name] = pa.chunked_array([pa.array(values, kind)])
    starts = np.concatenate([[True] + [False] * (len(key) - 1) for key in keys])
    result = engine(Groups(np.array(place, np.int64), starts), columns)
    index = pa.array(result.rows)
    table = {name: result.columns[name] if name in result.columns else columns[name].take(index) for name in columns}
    lists = {name: column.to_pylist() for name, column in table.items()}
    return [
        model.Row({name: lists[name][at] for name in names}, lists["_VALUE_KIND"][at], lists["_SEQUENCE_NUMBER"][at])
        for at in range(len(keys))
    ]


def engine(**settings):
    groups = tuple(SequenceGroup(fields, columns) for fields, columns in settings.pop("groups", ()))
    removing = settings.pop("removing", ())
    return PartialUpdate(
        keys=frozenset("k"),
        groups=groups,
        removing=tuple(group for group in groups if set(removing) & set(group.fields)),
        **settings,
    )


def check(seed, kinds, settings, expected, *, wrap=lambda one: one, reduced=model.reduce, levels=()):
    rand = random.Random(seed)
    for _ in range(12):
        keys = versions(rand, kinds, rand.choice([0.0, 0.4, 0.8]), levels)
        wanted = [reduced(expected, key) for key in keys]
        got = merged(wrap(engine(**settings)), keys, rand)
        for one, other, key in zip(wanted, got, keys, strict=True):
            assert other.values == one.values
            assert other.kind == one.kind
            if one.sequence is not None:
                assert other.sequence == one.sequence or (len(key) == 1 and other.sequence == key[0].sequence)


SEEDS = [*range(3), *(pytest.param(seed, marks=pytest.mark.full) for seed in range(3, 60))]


@pytest.mark.parametrize("seed", SEEDS)
def test_the_newest_value_that_is_not_null_wins(seed):
    check(seed, [0, 0, 2], {}, model.PartialUpdate(NAMES))


@pytest.mark.parametrize("seed", SEEDS)
def test_retracts_that_are_ignored_count_only_as_the_first_version(seed):
    check(seed, [0, 1, 2, 3], {"retracts": Retracts.IGNORE}, model.PartialUpdate(NAMES, ignore_delete=True))


@pytest.mark.parametrize("seed", SEEDS)
def test_a_delete_removes_the_row_and_leaves_its_own_values(seed):
    check(seed, [0, 1, 2, 3], {"retracts": Retracts.REMOVE}, model.PartialUpdate(NAMES, remove=True))


@pytest.mark.parametrize("seed", SEEDS)
def test_columns_of_a_sequence_group_move_together(seed):
    check(seed, [0, 2], {"groups": GROUPS, "retracts": Retracts.GROUPS}, model.PartialUpdate(NAMES, groups=GROUPS))


@pytest.mark.parametrize("seed", SEEDS)
def test_retracts_undo_the_columns_of_sequence_groups(seed):
    settings = {"groups": GROUPS, "retracts": Retracts.GROUPS}
    check(seed, [0, 0, 1, 2, 3], settings, model.PartialUpdate(NAMES, groups=GROUPS))


@pytest.mark.parametrize("seed", SEEDS)
def test_sequence_groups_know_of_retracts_that_are_ignored_only_as_first_versions(seed):
    settings = {"groups": GROUPS, "retracts": Retracts.IGNORE}
    check(seed, [0, 0, 1, 2, 3], settings, model.PartialUpdate(NAMES, groups=GROUPS, ignore_delete=True))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("removing", [("g",), ("h2",), ("g", "h1")])
def test_a_delete_of_a_sequence_group_can_remove_the_row(seed, removing):
    settings = {"groups": GROUPS, "removing": removing, "retracts": Retracts.GROUPS}
    expected = model.PartialUpdate(NAMES, groups=GROUPS, removing=removing)
    check(seed, [0, 0, 1, 2, 3], settings, expected)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("kinds", [[0], [0, 0, 1, 3]])
@pytest.mark.parametrize("removing", [(), ("g",), ("g", "h1")])
@pytest.mark.parametrize("ignore", [False, True])
def test_aggregates_of_a_sequence_group_handle_newer_older_and_retracted_versions(seed, kinds, removing, ignore):
    functions = {"b": FUNCTIONS["sum"], "c": FUNCTIONS["last"], "s": FUNCTIONS["last"]}
    settings = {
        "groups": GROUPS,
        "removing": () if ignore else removing,
        "retracts": Retracts.IGNORE if ignore else Retracts.GROUPS,
        "aggregators": {name: folded(function) for name, function in functions.items()},
    }
    expected = model.PartialUpdate(
        NAMES, groups=GROUPS, removing=settings["removing"], functions=functions, ignore_delete=ignore
    )
    check(seed, kinds, settings, expected)


@pytest.mark.parametrize("seed", SEEDS)
def test_with_a_lookup_the_lowest_level_speaks_for_all_levels_below(seed):
    settings = {"groups": GROUPS, "retracts": Retracts.GROUPS}
    expected = model.PartialUpdate(NAMES, groups=GROUPS)

    def reduced(one, rows):
        return model.reduce(lambda several: model.lookup(one, several), rows)

    check(seed, [0, 0, 1, 3], settings, expected, wrap=Lookup, reduced=reduced, levels=(1, 3, 5))


@pytest.mark.parametrize("kind", [1, 3])
def test_a_retract_that_no_option_allows_is_refused_by_the_names_of_the_options(kind):
    keys = [[model.Row(dict.fromkeys(NAMES)), model.Row(dict.fromkeys(NAMES), kind)]]
    with pytest.raises(UsageError, match=r"ignore-delete.*remove-record-on-delete.*sequence-group"):
        merged(engine(), keys, random.Random(0))


def test_a_retract_that_is_alone_is_returned_as_it_is():
    (row,) = merged(engine(), [[model.Row(dict.fromkeys(NAMES, None), 3, 5)]], random.Random(0))
    assert (row.kind, row.sequence) == (3, 5)


def test_null_in_a_column_that_is_not_null_is_refused():
    keys = [[model.Row(dict.fromkeys(NAMES, None)), model.Row(dict.fromkeys(NAMES, None))]]
    with pytest.raises(SchemaError, match="'b' is NOT NULL"):
        merged(engine(required=frozenset("b")), keys, random.Random(0))


def test_a_projected_read_needs_the_sequence_fields_of_its_columns_and_those_that_remove_rows():
    one = engine(groups=GROUPS, removing=("g",), retracts=Retracts.GROUPS)
    assert one.inputs(frozenset("a")) == {"a", "g"}
    assert one.inputs(frozenset("d")) == {"d", "h1", "h2", "g"}
    assert engine(groups=GROUPS).inputs(frozenset("a")) == {"a"}
