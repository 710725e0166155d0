"""Options that paimon_py does nothing for: the calls that say so, and how often."""

from __future__ import annotations

import logging
import pickle
import warnings

import pyarrow as pa
import pytest
from unit.public import QUICK, env, files, new_catalog

from paimon_py import Catalog, PaimonWarning, SetOption, Table

SCHEMA = pa.schema([pa.field("k", pa.int64(), nullable=False), ("v", pa.string())])
ROWS = pa.table({"k": [1, 2], "v": ["x", "y"]}, schema=SCHEMA)
IDLE = {"metastore.partitioned-table": "true", "manifest-sort.enabled": "true"}

WRITES = {
    "write_arrow": lambda table, _: table.write_arrow(ROWS),
    "writer": lambda table, _: table.writer(),
    "commit": lambda table, changes: table.commit(changes),
    "upsert": lambda table, _: table.upsert(ROWS),
    "delete": lambda table, _: table.delete("k = 1"),
    "update": lambda table, _: table.update("k = 1", {"v": "z"}),
    "merge": lambda table, _: table.merge(ROWS, ["k"], when_matched_update=True),
    "truncate": lambda table, _: table.truncate(),
    "compact": lambda table, _: table.compact(),
}


@pytest.fixture
def catalog(tmp_path):
    return new_catalog(tmp_path)


@pytest.fixture
def table(catalog):
    with pytest.warns(PaimonWarning):
        return catalog.create_table("d.t", SCHEMA, primary_key=["k"], options={"bucket": "1", **IDLE})


def test_a_new_table_is_warned_of_by_name_in_warnings_and_in_the_log(catalog, caplog):
    with caplog.at_level(logging.WARNING, "paimon_py"), pytest.warns(PaimonWarning) as caught:
        table = catalog.create_table("d.t", SCHEMA, primary_key=["k"], options={"bucket": "1", **IDLE})
    message = str(caught[0].message)
    assert len(caught) == 1 and caught[0].filename == __file__
    assert message.startswith(f"{table.location}: these options have no effect in paimon_py yet: ")
    assert "metastore.partitioned-table = 'true': no metastore is notified" in message
    assert "manifest-sort.enabled = 'true': manifests are not sorted" in message
    assert [(record.name, record.getMessage()) for record in caplog.records] == [("paimon_py", message)]


def changes_of(table):
    with table.writer() as writer:
        writer.write_arrow(ROWS)
        return bytes(writer.changes())


def test_a_table_object_warns_once(table, caplog):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for write in WRITES.values():
            write(table, changes_of(table))
    assert caplog.records == []


@pytest.mark.parametrize("verb", WRITES)
def test_a_table_that_is_opened_warns_when_it_is_written_and_not_when_it_is_read(table, verb):
    table.write_arrow(ROWS)
    changes = changes_of(table)
    again = Table.open(table.location, QUICK, env=env())
    assert again.scan().to_arrow().num_rows == again.lookup([(1,), (2,)]).num_rows == 2
    with pytest.warns(PaimonWarning, match="metastore.partitioned-table = 'true'.*; manifest-sort.enabled"):
        WRITES[verb](again, changes)
    WRITES[verb](again, changes)


def test_an_alter_warns_of_what_it_sets(catalog):
    table = catalog.create_table("d.t", SCHEMA, primary_key=["k"], options={"bucket": "1", "clustering.history-partition.limit": "5"})
    with pytest.warns(PaimonWarning, match="clustering.history-partition.limit = '6': clustering does without it$") as caught:
        table.alter(SetOption("clustering.history-partition.limit", "6"), SetOption("manifest-sort.enabled", "False"))
    assert len(caught) == 1
    table.write_arrow(ROWS)
    with pytest.warns(PaimonWarning, match="clustering.history-partition.limit = '7'"):
        table.alter(SetOption("clustering.history-partition.limit", "7"))
    table.alter(SetOption("clustering.history-partition.limit", "5"))


def test_a_warning_that_is_an_error_leaves_everything_as_it_was(tmp_path, catalog):
    before = files(tmp_path)
    with pytest.raises(PaimonWarning):  # the suite makes warnings errors
        catalog.create_table("d.t", SCHEMA, options=IDLE)
    assert (files(tmp_path), catalog.tables("d")) == (before, [])


def test_a_table_object_that_travelled_warns_for_itself(table):
    with pytest.warns(PaimonWarning):
        pickle.loads(pickle.dumps(table)).write_arrow(ROWS)


def test_defaults_of_a_catalog_count_as_options(tmp_path):
    catalog = Catalog.open(tmp_path, {**QUICK, "table-default.manifest-sort.enabled": "true"}, env=env())
    catalog.create_database("d")
    with pytest.warns(PaimonWarning, match="manifest-sort.enabled = 'true'"):
        catalog.create_table("d.t", SCHEMA)
