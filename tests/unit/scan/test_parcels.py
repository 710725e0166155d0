"""Small splits that are read in parcels: the rows of splits that are read alone, in the same order."""

from __future__ import annotations

import pyarrow as pa
import pytest

from paimon_py import AddColumn, Catalog, col
from paimon_py.scan.chain import ChainScan
from paimon_py.scan.fallback import FallbackScan
from paimon_py.scan.parallel_read import in_parcels, parcels_of
from paimon_py.scan.scan import Scan
from paimon_py.scan.waiting import WaitingScan

KINDS = {
    "append": ([], {"bucket": "-1"}),
    "row-tracking": ([], {"bucket": "-1", "row-tracking.enabled": "true"}),
    "deduplicate": (["p", "k"], {"bucket": "1"}),
    "deletion-vectors": (["p", "k"], {"bucket": "1", "deletion-vectors.enabled": "true"}),
}
PARTITIONS = 24
WHERE = {
    "nothing": None,
    "values": (col("v") > 350) | (col("s") == "s3"),
    "a partition and a value": (col("p") < 20) & (col("v") <= 250),
    "NULL": col("v").is_null(),
    "a column that was added": col("later").is_null() | (col("later") > 1030),
}


def rows(first, count, kind):
    keys = range(first, first + count)
    values = [None if key % 11 == 0 else key for key in keys]
    columns = {"p": [key % PARTITIONS for key in keys], "k": keys, "v": values, "s": [f"s{key % 7}" for key in keys]}
    schema = pa.schema([
        pa.field("p", pa.int32(), nullable=not kind), pa.field("k", pa.int64(), nullable=not kind),
        pa.field("v", pa.int64()), pa.field("s", pa.string()),
    ])  # fmt: skip
    return pa.table(columns, schema=schema)


@pytest.fixture(scope="module", params=KINDS)
def table(request, tmp_path_factory):
    """A table of 24 partitions, some of whose rows were written again, deleted, or have a column more."""
    keys, options = KINDS[request.param]
    catalog = Catalog.open(tmp_path_factory.mktemp("w"))
    catalog.create_database("d")
    options = {"write-only": "true", **options}
    made = catalog.create_table("d.t", rows(0, 1, keys).schema, primary_key=keys, partition_by=["p"], options=options)
    made.write_arrow(rows(0, 400, keys))
    made.write_arrow(rows(300, 60, keys))
    made.delete(where=col("k").isin(list(range(5, 400, 10))))
    if request.param == "deletion-vectors":
        made.compact()
        made.write_arrow(rows(200, 50, keys))
        made.compact()
    made.alter(AddColumn("later", "BIGINT"))
    later = rows(1000, 60, keys)
    made.write_arrow(later.append_column("later", later["k"]))
    return made


def test_the_rows_are_those_of_splits_read_alone(table):
    for number, (name, where) in enumerate(WHERE.items()):
        scan = table.scan(where=where, columns=(None, ["v", "p"], [])[number % 3])
        splits = scan.splits()
        alone = [pa.Table.from_batches(scan.read(split), scan.schema) for split in splits]
        assert any(len(parcel) > 1 for parcel in in_parcels(table._root, splits))
        found = scan.to_arrow()
        assert found.num_rows == sum(part.num_rows for part in alone) == scan.count() > 0, name
        assert not scan.schema.names or found.equals(pa.concat_tables(alone)), name
        assert scan.to_reader().read_all().equals(found), name


def test_parcels_keep_the_order_and_are_small(table):
    splits = table.scan().splits()
    parcels = list(parcels_of(splits))
    assert [split for parcel in parcels for split in parcel] == splits
    assert [len(parcel) for parcel in parcels] == [len(splits)]



def test_scans_that_read_splits_their_own_way_say_how_they_read_parcels():
    for kind in (ChainScan, FallbackScan, WaitingScan):
        assert kind._read is not Scan._read
        assert kind._parcel is not Scan._parcel, kind
