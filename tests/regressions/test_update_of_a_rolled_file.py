"""Found with BLOBs in files of their own (2026-11-28): an update of rows of a writer's second file was lost.

The writer numbered the rows of its later files on; the commit took these numbers for ids of snapshots, so that columns
that were set later counted as older.
"""

from paimon_py import Catalog, Schema

OPTIONS = {"bucket": "-1", "row-tracking.enabled": "true", "data-evolution.enabled": "true", "target-file-row-num": "7"}


def test_rows_of_every_file_can_be_updated(tmp_path):
    catalog = Catalog.open(str(tmp_path))
    catalog.create_database("db")
    table = catalog.create_table("db.t", Schema({"id": "INT", "n": "STRING"}), options=OPTIONS)
    with table.writer() as writer:
        writer.write_arrow([{"id": i, "n": "old"} for i in range(17)])
        first = writer.changes()
        writer.write_arrow([{"id": i, "n": "old"} for i in range(17, 20)])
        table.commit([first, writer.changes()])
    files = table.system("files").scan(columns=["min_sequence_number", "max_sequence_number"]).to_arrow().to_pylist()
    assert [tuple(file.values()) for file in files] == [(1, 1)] * 4
    for row in range(20):
        table.update(f"id = {row}", {"n": "new"})
    assert table.scan(where="n = 'new'").count() == 20
