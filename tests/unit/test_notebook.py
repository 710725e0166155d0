"""What notebooks show of values: what matters, escaped, without secrets, for few store calls, and never an exception."""

from __future__ import annotations

import html.parser
import re

import pyarrow as pa
import pytest
from unit.public import env, keyed_table, new_catalog

from paimon_py import Catalog, Schema, SetOption, Table, col
from paimon_py import html as pages
from paimon_py.metadata.root import TableRoot
from paimon_py.testing.counting_store import CountingStore
from paimon_py.types import Statistics

CALLS_MAX = 8
HOSTILE = "<script>alert('x')</script>&\"<img src=x onerror=alert(1)>"


class Checker(html.parser.HTMLParser):
    """Knows the tags that pages may have, and whether each one is closed."""

    def __init__(self):
        super().__init__()
        self.open, self.text = [], []

    def handle_starttag(self, tag, attrs):
        assert tag in ("div", "b", "i", "table", "tr", "td", "th", "pre"), tag
        assert {name for name, _ in attrs} <= {"style", "class"}
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def shown(value):
    """The text of a value's page, which is well formed."""
    checker = Checker()
    checker.feed(value._repr_html_())
    checker.close()
    assert checker.open == []
    return " ".join(checker.text)


@pytest.fixture
def catalog(tmp_path):
    return new_catalog(str(tmp_path / "w"))


@pytest.fixture
def table(catalog):
    return keyed_table(catalog)


def test_a_catalog_shows_its_databases_and_tables(catalog, table):
    catalog.create_database("empty")
    text = shown(catalog)
    for part in ("Catalog", catalog.warehouse, "d", "keyed", "empty", "no table"):
        assert part in text
    assert "no database" in shown(Catalog.open(catalog.warehouse + "-other", env=env()))


def test_a_catalog_lists_the_tables_of_few_databases(catalog, monkeypatch):
    for number in range(10):
        catalog.create_database(f"x{number}")
    asked = []
    monkeypatch.setattr(Catalog, "tables", lambda _, name: asked.append(name) or [])
    assert "x9" in shown(catalog)
    assert len(asked) == 3


def test_a_table_shows_schema_options_size_and_commits(table):
    text = shown(table)
    for part in ("Table d.keyed", "BIGINT NOT NULL", "primary key p, k", "partitioned by p", "bucket 2", "rows in all files 3",
                 "data files 3", "bytes", "APPEND", table.location):  # fmt: skip
        assert part in " ".join(text.split()), part


def test_an_empty_table_says_so(catalog):
    assert "the table is empty" in shown(catalog.create_table("d.e", Schema([("a", "INT")])))


def test_pages_cost_few_store_calls(table):
    for number in range(12):
        table.write_arrow(pa.table({"p": pa.array([1], pa.int32()), "k": [number], "v": ["x"]}))
    counting = CountingStore(table._root.store)
    again = Table(TableRoot(counting, table._root.path, env()), table.schema, table.name)
    shown(again)
    assert 0 < counting.calls.total() <= CALLS_MAX, counting.calls
    for value in (table.schema, again.system("files"), again.system("audit_log"), table.snapshot()):
        counting.calls.clear()
        shown(value)
        assert counting.calls.total() == 0
    counting.calls.clear()
    scan = again.scan(where="k > 3", columns=["v"])
    text = shown(scan)
    assert "explain()" in text or "files to read" in text
    assert counting.calls.total() <= CALLS_MAX, counting.calls


def test_a_scan_shows_its_columns_and_plan(table):
    text = " ".join(shown(table.scan(columns=["v"], where="p = 2", limit=4)).split())
    for part in ("Scan", "where col(\"p\") == 2", "limit 4", "state latest", "v string", "snapshot 2", "files to read 1", "files left out"):
        assert part in text, part
    assert "explain()" in shown(table.changes(1, 2))
    assert "MetadataScan" in shown(table.system("snapshots").scan())
    planned = table.scan(where="p = 2")
    planned.splits()
    assert "files to read" in shown(planned)


def test_a_scan_of_an_empty_table_says_so(catalog):
    empty = catalog.create_table("d.e", Schema([("a", "INT")]))
    for scan in (empty.scan(), empty.scan(where="a > 1", limit=3)):
        assert "rows none: the table is empty" in " ".join(shown(scan).split())


def test_a_scan_of_a_state_that_is_not_there_says_so(table):
    text = " ".join(shown(table.scan(tag="none")).split())
    assert "state tag='none'" in text and "TagNotFoundError: " in text
    assert "SnapshotNotFoundError: " in shown(table.scan(snapshot_id=99))


def test_tags_manifests_and_statistics_have_pages(table):
    table.analyze(columns=["k"])
    text = " ".join(shown(table.statistics()).split())
    assert "merged_record_count 2" in text and "column distinct_count min max" in text and "k 2 1 2 0 8 8" in text
    assert "no column" in shown(Statistics(snapshot_id=1, schema_id=0))
    tag = " ".join(shown(table.create_tag("second", snapshot_id=1)).split())
    assert "Tag second snapshot 1 time " in tag and "9223372036854775807" not in tag
    assert "files added 2 files deleted 0 bytes" in " ".join(shown(table.snapshot(1).manifests()[0]).split())


def test_snapshots_results_and_explanations_have_pages(table):
    assert "commit user" in shown(table.snapshot())
    assert "SystemTable d.keyed$files" in shown(table.system("files"))
    assert "file_path" in shown(table.system("files"))
    rows = pa.table({"p": pa.array([1], pa.int32()), "k": [9], "v": ["z"]})
    assert "snapshot_ids 3" in " ".join(shown(table.write_arrow(rows)).split())
    assert "RowsResult" in shown(table.delete("k = 9"))
    assert "ExpiredSnapshots" in shown(table.expire_snapshots(dry_run=True))
    assert "rows" in shown(table.scan().explain(analyze=True))
    assert "rows: 4 produced" in shown(table.system("snapshots").scan().explain(analyze=True))


def test_what_users_named_is_escaped_and_cut(catalog):
    table = catalog.create_table("d.h", Schema([(HOSTILE, "INT", HOSTILE)]), comment=HOSTILE)
    table.write_arrow(pa.table({HOSTILE: pa.array([1], pa.int32())}))
    for value in (table, table.schema, table.scan(columns=[HOSTILE]), table.snapshot(), table.scan().explain()):
        assert "<script" not in value._repr_html_() and "<img" not in value._repr_html_()
        shown(value)
    assert len(pages.escape("x" * 10_000)) < 400


def test_what_nobody_sees_is_written_out(catalog):
    table = catalog.create_table("d.u", Schema([("a\u202eb", "INT", "x\x1b[31m\u2066")]), comment="no\u200bspace")
    for value in (table, table.schema, table.scan(where=col("a\u202eb") == 1), table.scan().explain()):
        page = value._repr_html_()
        assert "a\\u202eb" in page and not set(page) & set("\u202e\u2066\u200b\x1b"), page
    assert "x\\x1b[31m\\u2066" in table._repr_html_() and "no\\u200bspace" in table._repr_html_()
    assert table.scan().explain()._repr_html_().count("\n") > 3
    assert pages.escape("half \ud800") == "half \\ud800" and "half \\ud800" in pages.preformat("half \ud800")


def test_times_of_results_can_be_read(table):
    assert re.search(r"older_than_millis \d+ \(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\+00:00\)", " ".join(shown(table.remove_orphans()).split()))


def test_pages_hide_secrets(catalog):
    table = catalog.create_table("d.s", Schema([("a", "INT")]), options={"my.secret": "sesame", "bucket": "-1"})
    for value in (table, table.schema, table.scan()):
        assert "sesame" not in value._repr_html_()
    assert "***" in shown(table)
    assert "sesame" not in repr(table.schema)


def test_what_cannot_be_read_is_said(catalog, table):
    again = Table.open(table.location, env=env())
    catalog.drop_table("d.keyed")
    text = shown(again)
    assert "BIGINT NOT NULL" in text and "TableNotFoundError" in text
    assert "TableNotFoundError" in shown(again.scan())


def test_long_tables_are_cut(catalog):
    wide = catalog.create_table("d.w", Schema([(f"c{number}", "INT") for number in range(70)]))
    assert "… 20 more" in shown(wide)
    assert wide._repr_html_().count("<tr>") < 70


def test_a_schema_prints_in_a_line(table):
    table.alter(SetOption("my.own", "secret"))
    assert repr(table.schema) == (
        "TableSchema(1: p INT NOT NULL, k BIGINT NOT NULL, v STRING, primary_key=['p', 'k'], partition_by=['p'], "
        "options={'bucket': '2', 'my.own': '***'})"
    )


def test_names_of_many_columns_are_cut(catalog):
    wide = catalog.create_table("d.many", Schema([(f"c{number}", "INT") for number in range(70)]))
    assert f"c19, … 50 more], location={wide.location!r})" in repr(wide)
    assert repr(wide.schema).startswith("TableSchema(0: c0 INT, c1 INT, ") and repr(wide.schema).endswith("c19 INT, … 50 more)")


def test_long_grids_scroll_and_comments_are_shown_where_there_are_any(catalog):
    wide = catalog.create_table("d.wide", Schema([(f"c{number}", "INT") for number in range(40)]))
    told = catalog.create_table("d.told", Schema([("a", "INT", "what a is"), ("b", "INT")]))
    assert "overflow:auto;max-height:22em" in wide._repr_html_() and "comment" not in wide._repr_html_()
    assert "max-height" not in told._repr_html_() and "what a is" in told._repr_html_() and ">comment<" in told._repr_html_()
