"""`paimon-py report`: one page about a warehouse, whole in itself, with everything escaped."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pyarrow as pa
import pytest

from paimon_py import Catalog, Finding
from paimon_py.cli.app import main
from paimon_py.cli.pictures import bars, columns, line
from paimon_py.cli.report_page import report_page
from paimon_py.cli.report_values import TableReport, report_table

KEYED = pa.schema([pa.field("k", pa.int64(), nullable=False), ("v", pa.string())])
VOID = {"meta", "br", "rect", "circle", "polyline"}


class Outline(HTMLParser):
    """Tags that are open, texts, and attributes that load something from elsewhere."""

    def __init__(self):
        super().__init__()
        self.open, self.texts, self.loads = [], [], []

    def handle_starttag(self, tag, attributes):
        self.loads += [value for name, value in attributes if name in ("src", "href", "srcset")]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        assert tag in VOID

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)


def outline(page):
    found = Outline()
    found.feed(page)
    assert found.open == [] and found.loads == []
    return "\n".join(found.texts)


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "wh"
    catalog = Catalog.open(path, {"fs.local.fsync": "false"})
    catalog.create_database("d")
    options = {"write-only": "true", "snapshot.num-retained.max": "5", "snapshot.num-retained.min": "1"}
    table = catalog.create_table("d.piled_up", KEYED, primary_key=["k"], options={"bucket": "2", **options})
    for n in range(10):
        table.write_arrow(pa.table({"k": [n, n + 1], "v": ["x", "y"]}))
    catalog.create_table("d.empty", KEYED)
    catalog.create_table("d.one", KEYED).write_arrow(pa.table({"k": [1], "v": ["x"]}))
    return str(path)


def test_a_page_says_what_needs_care_and_what_it_would_bring(warehouse, tmp_path, capsys):
    file = tmp_path / "report.html"
    assert main(["report", warehouse, "--html", str(file)]) == 0
    assert capsys.readouterr().out.strip() == f"{file}: 3 tables, 1 with findings"
    text = outline(file.read_text(encoding="utf-8"))
    for heading in ("Tables that need care", "Effect of maintenance", "Sizes", "Small files", "Growth"):
        assert heading in text
    assert "up to 10 files on level 0 of" in text and "table.compact()" in text
    assert re.search(r"\d+ → about 2", text) and text.count("d.piled_up") > 4


def test_values_of_one_table(warehouse):
    table = Catalog.open(warehouse).table("d.piled_up")
    found = report_table(table)
    assert sum(found.sizes) == found.measures.file_count == found.gain.files_before and found.sizes[0] == found.gain.files_before
    assert found.gain.files_after == 2 and found.gain.snapshots == 5 and found.gain.freed_files > 0
    assert found.skew is not None and len(found.history) == 10
    assert table.snapshot().id == 10, "nothing was changed"


def test_a_page_of_an_empty_warehouse_and_of_tables_that_cannot_be_read(tmp_path):
    catalog = Catalog.open(tmp_path / "wh", {"fs.local.fsync": "false"})
    catalog.create_database("d")
    assert main(["report", str(tmp_path / "wh"), "--html", str(tmp_path / "a.html")]) == 0
    assert "No table." in outline((tmp_path / "a.html").read_text())
    table = catalog.create_table("d.t", KEYED)
    table.write_arrow(pa.table({"k": [1], "v": ["x"]}))
    for path in Path(table.location, "manifest").iterdir():
        path.write_bytes(b"damage")
    assert main(["report", str(tmp_path / "wh"), "--html", str(tmp_path / "b.html"), "-d", "d"]) == 0
    assert "Tables that cannot be read" in outline((tmp_path / "b.html").read_text())


def test_everything_is_escaped():
    wicked = "<script>alert('x')</script>&"
    finding = Finding(code="x", severity="problem", message=wicked, mend=wicked)
    page = report_page(wicked, [TableReport(name=wicked, error=wicked, findings=(finding,))], 0)
    assert "<script>" not in page and "<script>alert('x')</script>&" in outline(page)
    for picture in (bars([(wicked, 1, wicked)], wicked), columns([(wicked, 1, wicked)], wicked), line([(0, 1), (1, 2)], wicked)):
        assert "<script" not in picture


def test_pictures_of_nothing_and_of_equal_values():
    assert line([], "nothing") == ""
    assert "NaN" not in line([(5, 0), (5, 0)], "flat") and "<svg" in bars([], "none")
    assert 'height="0' in columns([("a", 0, "0")], "zero")


def test_a_file_is_needed(warehouse, capsys):
    assert main(["report", warehouse]) == 2
