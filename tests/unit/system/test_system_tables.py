"""System tables that show rows: what they show, filters and columns, time travel and changes, and what is refused."""

from __future__ import annotations

import pickle

import msgspec
import pyarrow as pa
import pytest

from paimon_py import Catalog, Schema, Table, UnsupportedError, UsageError, col
from paimon_py.scan.request import Request
from paimon_py.scan.row_kinds import ROW_KIND_FIELD
from paimon_py.scan.scan import Scan
from paimon_py.spec.new_schema import TableSpec, new_table_schema
from paimon_py.system.binlog import Binlog
from paimon_py.system.kinds import KINDS


@pytest.fixture
def catalog(tmp_path):
    made = Catalog.open(str(tmp_path / "wh"))
    made.create_database("d")
    return made


def write(table, rows):
    names = [*table.schema.names, "_row_kind"][: len(rows[0])]
    types = [pa.int64(), pa.string(), pa.string()]
    table.write_arrow(pa.table([pa.array(column, kind) for column, kind in zip(zip(*rows), types)], names))


@pytest.fixture
def table(catalog):
    columns = Schema([("k", "BIGINT NOT NULL"), ("v", "STRING")])
    made = catalog.create_table("d.t", columns, primary_key=["k"], options={"bucket": "1", "write-only": "true"})
    write(made, [(1, "a", "+I"), (2, "a", "+I"), (3, "a", "+I")])
    write(made, [(2, "b", "-D"), (77, None, "-D"), (1, "u", "+U")])
    return made


def rows(scan):
    assert scan.count() == scan.to_arrow().num_rows
    return sorted((tuple(row.values()) for row in scan.to_arrow().to_pylist()), key=str)


def test_audit_log_shows_the_newest_row_of_every_key_with_its_kind(table, catalog):
    log = catalog.table("d.t$audit_log")
    wanted = [("+I", 3, "a"), ("+U", 1, "u"), ("-D", 2, "b"), ("-D", 77, None)]
    assert rows(log.scan()) == wanted
    assert rows(table.system("audit_log").scan()) == wanted
    assert log.schema.names == ("rowkind", "k", "v")
    assert log.schema.primary_keys == ()
    assert log.name == "d.t$audit_log"
    assert rows(log.scan(snapshot_id=1)) == [("+I", 1, "a"), ("+I", 2, "a"), ("+I", 3, "a")]


@pytest.mark.parametrize(
    "where, wanted",
    [
        (col("rowkind") == "-D", [("-D", 2, "b"), ("-D", 77, None)]),
        ((col("rowkind") == "-D") & (col("k") > 50), [("-D", 77, None)]),
        ((col("rowkind") == "+U") | (col("k") == 3), [("+I", 3, "a"), ("+U", 1, "u")]),
        (col("v").is_null(), [("-D", 77, None)]),
        ("rowkind LIKE '+%' AND v = 'u'", [("+U", 1, "u")]),
    ],
)
def test_filters_can_use_kinds_and_columns(table, where, wanted):
    log = table.system("audit_log")
    assert rows(log.scan(where=where)) == wanted
    assert rows(log.scan(where=where, columns=["v", "rowkind"])) == sorted(((v, kind) for kind, _, v in wanted), key=str)
    assert rows(log.scan(where=where, columns=["k"])) == sorted(((k,) for _, k, _ in wanted), key=str)


def test_audit_log_of_changes(table):
    log = table.system("audit_log")
    assert rows(log.changes(1)) == [("+U", 1, "u"), ("-D", 2, "b"), ("-D", 77, None)]
    assert rows(log.scan(options={"incremental-between": "1,2"})) == rows(log.changes(1, 2))
    assert rows(log.changes(1, mode="diff")) == [("+U", 1, "u"), ("-D", 2, "a")]
    assert rows(log.scan(options={"incremental-between": "1,2", "incremental-between-scan-mode": "diff"})) == (
        rows(log.changes(1, mode="diff"))
    )
    scan = pickle.loads(pickle.dumps(log.changes(1)))
    assert [batch for split in scan.splits() for batch in scan.read(bytes(split))]
    assert pickle.loads(pickle.dumps(log)).schema == log.schema


def test_ro_shows_only_the_top_level(catalog):
    columns = Schema([("k", "BIGINT NOT NULL"), ("v", "STRING")])
    made = catalog.create_table("d.t", columns, primary_key=["k"], options={"bucket": "1"})
    write(made, [(1, "a"), (2, "a")])
    assert rows(made.system("ro").scan()) == []
    made.compact(full=True)
    write(made, [(1, "b"), (3, "b")])
    assert rows(made.system("ro").scan()) == [(1, "a"), (2, "a")]
    assert rows(made.system("ro").scan(where=col("k") == 2)) == [(2, "a")]
    assert all(split.raw for split in made.system("ro").scan().splits())
    assert made.system("ro").scan().explain().skipped.choice == 1
    with pytest.raises(UsageError, match=r"d\.t\$ro has no changes, only states"):
        made.system("ro").changes(1)
    with pytest.raises(UsageError, match="has no changes, only states"):
        made.system("ro").scan(options={"incremental-between": "1,2"})


def test_ro_of_an_append_table_is_the_table(catalog):
    made = catalog.create_table("d.t", Schema([("k", "BIGINT"), ("v", "STRING")]))
    write(made, [(1, "a")])
    assert rows(made.system("ro").scan()) == rows(made.scan()) == [(1, "a")]
    assert rows(made.system("ro").changes(0)) == [(1, "a", "+I")]


def binlog_of(batches, keys=("k",), columns=("rowkind", "k", "v"), where=None):
    schema = schema_of(keys)
    shown = Binlog().shown_schema(schema)
    request = Request(schema=shown, columns=columns, predicate=where)
    asked = Binlog().request_for(request)
    fields = [*asked.arrow_schema, ROW_KIND_FIELD]
    made = [
        pa.RecordBatch.from_pylist([dict(zip(("k", "v", "_row_kind"), row)) for row in part], pa.schema(fields))
        for part in batches
    ]
    found = [tuple(row.values()) for batch in Binlog().show(request, made) for row in batch.to_pylist()]
    return found


def schema_of(keys):
    return new_table_schema(Schema([("k", "BIGINT NOT NULL"), ("v", "STRING")]), TableSpec(primary_keys=keys), time_millis=0)


def test_binlog_combines_the_old_and_the_new_row_of_an_update():
    changes = [(1, "a", "+I"), (2, "a", "-U"), (2, "b", "+U"), (3, "x", "-D"), (4, "p", "-U"), (4, "q", "+U")]
    wanted = [
        ("+I", [1], ["a"]), ("+U", [2, 2], ["a", "b"]), ("-D", [3], ["x"]), ("+U", [4, 4], ["p", "q"]),
    ]  # fmt: skip
    for cut in range(1, len(changes)):
        assert binlog_of([changes[:cut], changes[cut:]]) == wanted
    assert binlog_of([[change] for change in changes]) == wanted
    assert binlog_of([changes], columns=("v",)) == [(values,) for _, _, values in wanted]


def test_binlog_joins_only_rows_of_one_key():
    assert binlog_of([[(1, "a", "-U"), (2, "b", "+U")]]) == [("-U", [1], ["a"]), ("+U", [2], ["b"])]
    assert binlog_of([[(1, "a", "-U")], [(1, "b", "-U")]]) == [("-U", [1], ["a"]), ("-U", [1], ["b"])]
    assert binlog_of([[(1, "a", "+U"), (1, "b", "-U")]]) == [("+U", [1], ["a"]), ("-U", [1], ["b"])]


def test_binlog_of_a_table(table, catalog):
    log = catalog.table("d.t$binlog")
    assert rows(log.scan()) == [("+I", [3], ["a"]), ("+U", [1], ["u"]), ("-D", [2], ["b"]), ("-D", [77], [None])]
    assert rows(log.changes(1)) == [("+U", [1], ["u"]), ("-D", [2], ["b"]), ("-D", [77], [None])]
    assert rows(log.scan(where=col("rowkind") == "+I", columns=["k"])) == [([3],)]


def test_append_tables_have_only_additions(catalog):
    made = catalog.create_table("d.t", Schema([("k", "BIGINT"), ("v", "STRING")]))
    write(made, [(1, "a"), (1, "a")])
    assert rows(made.system("audit_log").scan()) == [("+I", 1, "a")] * 2
    assert rows(made.system("binlog").changes(0)) == [("+I", [1], ["a"])] * 2


def test_what_is_not_there_is_refused_by_name(table, catalog):
    with pytest.raises(UsageError, match=r"system table \$audit_lgo does not exist; did you mean \$audit_log\?"):
        catalog.table("d.t$audit_lgo")
    with pytest.raises(UsageError, match="row-tracking.enabled"):
        catalog.table("d.t$row_tracking")
    with pytest.raises(UnsupportedError, match="cannot be created or changed"):
        catalog.drop_table("d.t$audit_log")
    with pytest.raises(UsageError, match="the name of a system table"):
        table.system(3)
    assert not isinstance(table.system("ro"), Table)
    odd = msgspec.structs.replace(table.schema, fields=(KINDS["audit_log"].view.field,))
    with pytest.raises(UnsupportedError, match="column called rowkind"):
        KINDS["audit_log"].view.shown_schema(odd)
    with pytest.raises(UsageError, match="order_by"):
        Scan(table._root, table.schema, view=table.system("audit_log")._kind.view, order_by="k", limit=3)


def test_system_tables_print_what_they_are(table):
    assert repr(table.system("audit_log")) == (
        f"SystemTable('d.t$audit_log', columns=[rowkind, k, v], location={table.location!r})"
    )


def test_sequence_numbers_are_refused_by_name(catalog):
    columns, option = Schema([("k", "BIGINT NOT NULL")]), {"table-read.sequence-number.enabled": "true"}
    made = catalog.create_table("d.n", columns, primary_key=["k"], options={"bucket": "1", **option})
    for name in ("audit_log", "binlog"):
        with pytest.raises(UnsupportedError, match="table-read.sequence-number.enabled"):
            made.system(name)
    assert made.system("ro").scan().count() == made.scan().count() == 0
    plain = catalog.create_table("d.plain", columns, primary_key=["k"], options={"bucket": "1"})
    with pytest.raises(UnsupportedError, match="table-read.sequence-number.enabled"):
        plain.system("audit_log").scan(options=option)
