"""Java writes the operation of a truncation into the snapshot; so do we."""

import pyarrow as pa

from paimon_py import Catalog


def test_snapshots_of_truncations_say_so(tmp_path):
    catalog = Catalog.open(str(tmp_path))
    catalog.create_database("db")
    table = catalog.create_table("db.t", pa.schema([("p", pa.int32()), ("v", pa.string())]), partition_by=["p"])
    table.write_arrow(pa.table({"p": pa.array([1, 2], pa.int32()), "v": ["a", "b"]}))
    table.drop_partitions([{"p": 1}])
    table.truncate()
    assert [snapshot.value.operation for snapshot in table.snapshots()] == [None, "TRUNCATE", "TRUNCATE"]
    assert table.scan().to_arrow().num_rows == 0
