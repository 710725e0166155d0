"""Rows go to their partition and bucket, in order, whatever the number of groups."""

import numpy as np
import pyarrow as pa
import pytest
from unit.write.support import schema_of

from paimon_py.codec.binary_row import encode
from paimon_py.codec.binary_row.hash import hash_rows
from paimon_py.codec.buckets import bucket_numbers
from paimon_py.errors import UnsupportedError
from paimon_py.metadata.open_table import OpenTable
from paimon_py.spec.data_file import EMPTY_ROW
from paimon_py.write.align import Alignment
from paimon_py.write.bucket_kinds import routing_of
from paimon_py.write.route import Router


def batch_of(schema, **columns):
    table = pa.table(columns)
    return Alignment(schema, table.schema).apply(table.combine_chunks().to_batches()[0]).batch


def reference(schema, batch, buckets):
    """Row by row: (partition bytes, bucket) → row numbers."""
    parts = [EMPTY_ROW] * batch.num_rows
    if schema.partition_keys:
        columns = [batch.column(name) for name in schema.partition_keys]
        parts = encode(columns, [field.type for field in schema.partition_fields]).to_pylist()
    numbers = [0] * batch.num_rows
    if buckets > 0:
        fields = [schema.field(name) for name in schema.bucket_keys]
        numbers = bucket_numbers([batch.column(f.name) for f in fields], [f.type for f in fields], buckets).tolist()
    groups = {}
    for row, key in enumerate(zip(parts, numbers, strict=True)):
        groups.setdefault(key, []).append(row)
    return groups


def routing(schema):
    """Of a table whose rows find their buckets without a look at the table."""
    return routing_of(OpenTable(None, schema), None)


def routed(schema, batch):
    parts = routing(schema).route(batch, None)
    return {(r.partition, r.bucket): r.batch.column("n").to_pylist() for r in parts}


@pytest.mark.parametrize("buckets", [1, 3, 64])
@pytest.mark.parametrize("partitions", [0, 1, 2])
def test_every_row_reaches_its_group_in_order(buckets, partitions):
    random = np.random.default_rng(buckets * 10 + partitions)
    keys = ["p", "q"][:partitions]
    schema = schema_of(
        {"n": "INT NOT NULL", "p": "STRING", "q": "DOUBLE"}, primary_key=["n"], partition_by=keys,
        options={"bucket": str(buckets), "bucket-key": "n"},
    )  # fmt: skip
    size = 2000
    texts = [None, "", " ", "a", "b" * 20]
    zeros = [0.0, -0.0, float("nan"), None, 1.5]
    batch = batch_of(
        schema, n=pa.array(range(size), pa.int32()), p=[texts[i] for i in random.integers(0, 5, size)],
        q=[zeros[i] for i in random.integers(0, 5, size)],
    )  # fmt: skip
    assert routed(schema, batch) == reference(schema, batch, buckets)


def test_more_groups_than_sixteen_bits():
    schema = schema_of(
        {"n": "INT NOT NULL", "p": "INT NOT NULL"},
        primary_key=["n", "p"],
        partition_by=["p"],
        options={"bucket": "9000"},
    )
    random = np.random.default_rng(1)
    batch = batch_of(
        schema, n=pa.array(range(70_000), pa.int32()), p=pa.array(random.integers(0, 40, 70_000).tolist(), pa.int32())
    )
    assert routed(schema, batch) == reference(schema, batch, 9000)


def test_many_sparse_combinations_of_partition_values():
    schema = schema_of({"n": "INT", "p": "INT", "q": "INT"}, partition_by=["p", "q"])
    size = 3000
    batch = batch_of(
        schema,
        n=pa.array(range(size), pa.int32()),
        p=pa.array(range(size), pa.int32()),
        q=pa.array(range(size), pa.int32()),
    )
    assert routed(schema, batch) == reference(schema, batch, 0)


def test_one_group_is_the_batch_itself():
    schema = schema_of({"n": "INT", "p": "STRING"}, partition_by=["p"])
    batch = batch_of(schema, n=pa.array([1, 2], pa.int32()), p=["a", "a"])
    (only,) = Router(schema).route(batch)
    assert only.batch is batch
    plain = schema_of({"n": "INT"})
    batch = batch_of(plain, n=pa.array([1], pa.int32()))
    assert Router(plain).route(batch)[0].batch is batch


def test_rows_that_are_together_already_are_not_copied():
    schema = schema_of({"n": "BIGINT", "p": "INT"}, partition_by=["p"])
    batch = batch_of(schema, n=list(range(100)), p=pa.array([1] * 50 + [2] * 50, pa.int32()))
    address = batch.column("n").buffers()[1].address
    assert {r.batch.column("n").buffers()[1].address for r in Router(schema).route(batch)} == {address}


def test_kinds_travel_with_their_rows():
    schema = schema_of({"n": "INT NOT NULL"}, primary_key=["n"], options={"bucket": "4"})
    batch = batch_of(schema, n=pa.array(range(100), pa.int32()))
    kinds = pa.array([n % 4 for n in range(100)], pa.int8())
    for part in routing(schema).route(batch, kinds):
        assert part.kinds.to_pylist() == [n % 4 for n in part.batch.column("n").to_pylist()]


def test_no_rows_give_no_batches():
    schema = schema_of({"n": "INT", "p": "INT"}, partition_by=["p"])
    batch = batch_of(schema, n=pa.array([1], pa.int32()), p=pa.array([1], pa.int32()))
    assert Router(schema).route(batch.slice(0, 0)) == []


def test_numbers_of_buckets_that_count_nothing_are_refused_by_name():
    schema = schema_of({"n": "INT NOT NULL"}, primary_key=["n"], options={"bucket": "0"})
    with pytest.raises(UnsupportedError, match="bucket=0"):
        routing(schema)


def test_keys_of_scattered_partitions_are_assigned_in_the_order_in_which_they_came():
    schema = schema_of(
        {"n": "INT NOT NULL", "p": "INT NOT NULL"}, primary_key=["n", "p"], partition_by=["p"], options={"bucket": "-1"}
    )
    random = np.random.default_rng(7)
    places = random.integers(0, 300, 2000)
    batch = batch_of(schema, n=pa.array(range(2000), pa.int32()), p=pa.array(places, pa.int32()))
    asked = {}

    def assign(partition, hashes):
        asked[partition] = hashes.tolist()
        return np.arange(len(hashes)) % 3

    numbers = Router(schema, assign=assign).bucket_numbers(batch)
    of_keys = hash_rows([batch.column("n")], [schema.field("n").type]).tolist()
    for place in set(places.tolist()):
        rows = np.flatnonzero(places == place).tolist()
        partition = encode([pa.array([place], pa.int32())], [schema.field("p").type])[0].as_py()
        assert asked[partition] == [of_keys[row] for row in rows]
        assert numbers[rows].tolist() == [at % 3 for at in range(len(rows))]
