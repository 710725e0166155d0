"""Which partitions are chosen, however that is said."""

from __future__ import annotations

import math

import pyarrow as pa
import pytest

from paimon_py import UsageError, col
from paimon_py.codec.binary_row import encode
from paimon_py.codec.partition_choice import PartitionChoice, choice_of
from paimon_py.expr.bind import bind
from paimon_py.spec.data_file import Stats
from paimon_py.spec.manifest import ManifestFile
from paimon_py.spec.schema import TableSchema
from paimon_py.spec.type_text import parse_type
from paimon_py.spec.types import Field

SCHEMA = TableSchema(
    version=3,
    id=0,
    fields=(
        Field(id=0, name="v", type=parse_type("INT")),
        Field(id=1, name="p", type=parse_type("TINYINT")),
        Field(id=2, name="q", type=parse_type("DOUBLE")),
    ),
    highest_field_id=2,
    partition_keys=("p", "q"),
)
VALUES = [(1, 0.0), (1, -0.0), (1, math.nan), (2, 1.5), (None, None), (2, None)]
ROWS = encode(
    [pa.array([p for p, _ in VALUES], pa.int8()), pa.array([q for _, q in VALUES], pa.float64())],
    [parse_type("TINYINT"), parse_type("DOUBLE")],
)


def taken(choice):
    """Places of the chosen ones among `VALUES`, together and one by one."""
    mask = choice(ROWS).tolist()
    assert [choice.includes(row) for row in ROWS.to_pylist()] == mask
    return [at for at, wanted in enumerate(mask) if wanted]


@pytest.mark.parametrize(
    ("specs", "places"),
    [
        ([{}], [0, 1, 2, 3, 4, 5]),
        ([{"p": 1}], [0, 1, 2]),
        ([{"p": 1}, {"q": 1.5}], [0, 1, 2, 3]),
        ([{"p": 1, "q": -0.0}], [1]),
        ([{"q": 0.0}], [0]),
        ([{"q": math.nan}], [2]),
        ([{"q": None}], [4, 5]),
        ([{"p": None, "q": None}], [4]),
        ([{"p": 3}], []),
        ([{"p": 3}, {}], [0, 1, 2, 3, 4, 5]),
    ],
)
def test_specs_choose_by_the_keys_that_they_name(specs, places):
    assert taken(PartitionChoice.of_specs(SCHEMA, specs)) == places


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"v": 1}, "'v' is not a partition key of the table; its keys: p, q"),
        ({1: 2, "x": 3}, "1, 'x' is not a partition key"),
        ({"p": "one"}, "partition value p='one' does not fit: .*TINYINT"),
        ({"p": 128}, "partition value p=128 does not fit: the column cannot hold it"),
        ({"p": 1.5}, r"p=1\.5 does not fit"),
        ({"p": [1]}, r"p=\[1\] does not fit"),
    ],
)
def test_impossible_partition_values_are_refused(spec, words):
    with pytest.raises(UsageError, match=words):
        PartitionChoice.of_specs(SCHEMA, [{"p": 1}, spec])


def test_serialized_rows_choose_themselves():
    wanted = [ROWS[4].as_py(), ROWS[1].as_py(), b"another"]
    assert taken(PartitionChoice.of_rows(wanted)) == [1, 4]
    assert taken(PartitionChoice.of_rows([])) == []


def test_a_list_and_a_condition_have_to_hold_both():
    assert choice_of(SCHEMA, "compact", None) is None
    assert taken(choice_of(SCHEMA, "compact", [{"p": 1}, {"p": 2}], "q >= 0.0 OR q IS NULL")) == [0, 2, 3, 5]
    assert taken(choice_of(SCHEMA, "compact", None, col("p") == 2)) == [3, 5]
    bare = TableSchema(version=3, id=0, fields=SCHEMA.fields, highest_field_id=2)
    assert choice_of(bare, "compact", None, "true")(ROWS).all()


@pytest.mark.parametrize("given", [(), [], {}, "p", 5, {"p": 1}, [{}], ["p"]])
def test_the_verb_refuses_arguments_that_are_not_lists_of_partitions(given):
    with pytest.raises(UsageError, match=r"rescale takes a list of at least one partition"):
        choice_of(SCHEMA, "rescale", given)


def test_a_condition_on_other_columns_is_refused():
    with pytest.raises(UsageError, match=r"compact\(where=…\) .* partition keys \(p, q\), not v"):
        choice_of(SCHEMA, "compact", None, col("v") > 1)


def test_manifests_without_a_chosen_partition_are_left_out():
    def manifest(name, low, high, nulls=(0, 0)):
        stats = Stats(ROWS[low].as_py(), ROWS[high].as_py(), nulls)
        return ManifestFile(name=name, size_bytes=1, added_files=2, deleted_files=0, partition_stats=stats, schema_id=0)

    files = [manifest("a", 0, 0), manifest("b", 0, 3), manifest("c", 3, 3), manifest("d", 4, 4, (2, 2))]
    wanted = PartitionChoice.where(SCHEMA, bind(col("p") == 2, SCHEMA.partition_fields))
    assert wanted.of_manifests(files).tolist() == [False, True, True, False]
    assert PartitionChoice.of_rows([ROWS[0].as_py()]).of_manifests(files).all()
