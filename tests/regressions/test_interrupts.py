"""Found in review: an interrupt after publication must not delete files that a snapshot names."""

from __future__ import annotations

import pyarrow as pa
import pytest

from paimon_py import Catalog, Table
from paimon_py.storage.local_store import LocalStore


def test_an_interrupt_after_publication_keeps_the_committed_files(tmp_path, monkeypatch):
    catalog = Catalog.open(str(tmp_path))
    catalog.create_database("db")
    table = catalog.create_table("db.t", pa.schema([("a", pa.int64())]))
    put_new = LocalStore.put_new

    def interrupted(self, path, data, *, within=None):
        put_new(self, path, data, within=within)
        raise KeyboardInterrupt

    monkeypatch.setattr(LocalStore, "put_new", interrupted)
    with pytest.raises(KeyboardInterrupt):
        table.write_arrow(pa.table({"a": [1, 2]}))
    monkeypatch.undo()
    assert Table.open(table.location).scan().to_arrow()["a"].to_pylist() == [1, 2]
