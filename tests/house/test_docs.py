"""Every Python block of the documentation runs, in the order of its page, unless the line before says why it does not.

Those that keep their tables also run one after the other in one directory, as a reader runs them, with the quickstart between.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from house import living_pages
from house.living_pages import blocks

from paimon_py import Catalog

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
RUNNING = [page for page in PAGES if blocks(page)]
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))
WIDTH = 95
"""What a code host and the site on a screen of 1280 points show without scrolling."""
QUICKSTART = """
import runpy, sys
import pyarrow as pa
quickstart = runpy.run_path(sys.argv[1])
rows = [(2013, month, 1, 2400 if month == 3 else None, 2400, 1, 700, "UA", "EWR") for month in range(1, 13)]
names = ["year", "month", "day", "dep_time", "arr_time", "flight", "dep_delay", "carrier", "origin"]
few = pa.Table.from_pylist([dict(zip(names, row)) for row in rows])
quickstart["main"].__globals__.update(flights=lambda: few, summarise_with_spark=lambda table: None)
quickstart["main"](*sys.argv[2:] or [quickstart["WAREHOUSE"]])
"""
"""The quickstart with twelve flights, of which eleven are cancelled, and without Spark."""


def run(directory, code, *arguments):
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False)


def quickstart(directory, *arguments):
    return run(directory, QUICKSTART, ROOT / "docs" / "quickstart.py", *arguments)


NUMBERED = ("changes.md", "concepts/snapshots.md", "howto/slow-scan.md", "howto/test-your-code.md")
"""Pages that show which numbers snapshots have and which files a scan reads, and one with tests in the place of a table."""
SHARED = [page for page in RUNNING if not page.as_posix().endswith(NUMBERED)]


def living(page, directory, company, *seeds):
    """The page alone, then for each seed in the company of `strangers`, of `neighbours` whose rows stay, or of each."""
    code = "import runpy, sys; sys.argv[:] = sys.argv[1:]; runpy.run_path(sys.argv[0], run_name='__main__')"
    return run(directory, code, living_pages.__file__, ",".join(company), page, *seeds)


COUNTS = ("howto/change-schema.md",)
"""Pages with a program that fails where the table has other rows than its own."""
COMPANY = {
    page: [*(["strangers"] if page in SHARED else []), *([] if page.as_posix().endswith(COUNTS) else ["neighbours"])]
    for page in (*RUNNING, *NOTEBOOKS)
}


def name_of(page):
    return page.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("page", [page for page in RUNNING if page not in SHARED], ids=name_of)
def test_python_blocks_run(page, tmp_path):
    done = run(tmp_path, "\n".join(blocks(page)))
    assert done.returncode == 0, done.stderr[-3000:]


@pytest.mark.budget(5)
@pytest.mark.parametrize("page", COMPANY, ids=name_of)
def test_a_page_ends_with_its_rows_and_those_of_neighbours_whoever_uses_its_tables(page, tmp_path, pytestconfig):
    done = living(page, tmp_path, COMPANY[page], pytestconfig.option.seed)
    assert done.returncode == 0, done.stderr[-3000:]


@pytest.mark.full
@pytest.mark.parametrize("page", COMPANY, ids=name_of)
def test_a_page_ends_with_the_same_rows_for_many_seeds(page, tmp_path):
    company = ["strangers", *COMPANY[page]] if page in NOTEBOOKS else COMPANY[page]
    done = living(page, tmp_path, company, *range(20))
    assert done.returncode == 0, done.stderr[-3000:]


LOST = """# A recipe that counts from the end

```python
import tempfile
from paimon_py import Catalog, Schema

catalog = Catalog.open(tempfile.mkdtemp())
catalog.create_database("d")
t = catalog.create_table("d.t", Schema({"id": "BIGINT NOT NULL", "n": "INT"}), primary_key=["id"])
t.write_arrow([{"id": 1, "n": 1}])
t.write_arrow([{"id": 1, "n": 2}])
```

```python
t.write_arrow(t.scan(snapshot_id=max(1, t.snapshot().id - 1)).to_arrow())
```
"""


@pytest.mark.budget(2)
def test_a_recipe_that_takes_the_commit_before_for_its_own_is_found(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(LOST)
    outcomes = [living(page, tmp_path, ["strangers"], seed) for seed in range(4)]
    assert any(done.returncode == 1 and "with strangers" in done.stderr for done in outcomes), outcomes[0].stderr


TAKEN = """# A recipe that takes the whole table for its own

```python
import tempfile
from paimon_py import Catalog, Schema

catalog = Catalog.open(tempfile.mkdtemp())
catalog.create_database("d")
t = catalog.create_table("d.t", Schema({"id": "BIGINT NOT NULL", "n": "INT"}), primary_key=["id"])
t.write_arrow([{"id": 1, "n": 1}])
```

```python
t.write_arrow([{"id": 1, "n": 2}], overwrite={})
```
"""


@pytest.mark.budget(2)
def test_a_recipe_that_takes_the_rows_of_others_is_found(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(TAKEN)
    outcomes = [living(page, tmp_path, ["neighbours"], seed) for seed in range(4)]
    assert any("neighbours wrote 1 rows, of which 0 are there" in done.stderr for done in outcomes), outcomes[0].stderr


@pytest.mark.slow
def test_the_tests_that_a_page_shows_pass(tmp_path):
    (tmp_path / "test_pipeline.py").write_text("\n".join(blocks(ROOT / "docs" / "howto" / "test-your-code.md")))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_pipeline.py"]
    known = {name: value for name, value in os.environ.items() if name != "PYTEST_ADDOPTS"}
    done = subprocess.run(command, cwd=tmp_path, env=known, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "4 passed" in done.stdout, done.stdout[-3000:] + done.stderr[-3000:]


@pytest.mark.slow
def test_pages_and_the_quickstart_run_one_after_the_other_in_one_directory(tmp_path):
    staying = [code for page in RUNNING if "tempfile" not in (code := "\n".join(blocks(page)))]
    assert len(staying) > 3
    first = [run(tmp_path, staying[0]), quickstart(tmp_path), *(run(tmp_path, code) for code in staying[1:])]
    again = [quickstart(tmp_path), *(run(tmp_path, code) for code in staying)]
    assert [each.stderr[-3000:] for each in (*first, *again) if each.returncode] == []
    assert Catalog.open(str(tmp_path / "warehouse")).table("demo.orders").scan().count() == 3
    made = Catalog.open(str(tmp_path / "warehouse-quickstart"))
    assert (made.databases(), made.table("demo.flights").scan().count()) == (["demo"], 1)


def test_the_quickstart_replaces_no_table_that_it_did_not_make(tmp_path):
    catalog = Catalog.open(str(tmp_path / "mine"))
    catalog.create_database("demo")
    catalog.create_table("demo.flights", pa.schema([("a", pa.int64())])).write_arrow(pa.table({"a": [1]}))
    done = quickstart(tmp_path, "mine")
    assert done.returncode == 1 and "name another warehouse" in done.stderr
    assert catalog.table("demo.flights").scan().count() == 1


@pytest.mark.parametrize("page", RUNNING, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_programs_are_no_wider_than_a_page(page):
    assert [line for block in blocks(page) for line in block.splitlines() if len(line) > WIDTH] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_a_page_begins_with_what_the_page_is_for(page):
    if page.parent.name == "reference" and page.name != "index.md":
        first = re.sub(r"^# .*\n+", "", page.read_text()).lstrip()
        assert not first.startswith((":::", "#"))
    lines = [line for line in page.read_text().splitlines() if line]
    assert lines[0].startswith("# ") and not lines[1].startswith(("#", ":::", "```", "|"))


KEEP_UP = """
import runpy, sys
import pyarrow as pa
page = runpy.run_path(sys.argv[1])
rows = [(day, carrier, flight, "EWR", None if flight % 3 == day % 2 else 600, flight - 2)
        for day in (1, 2) for carrier in ("UA", "DL") for flight in range(1, 6)]
page["main"].__globals__.update(flights=lambda: pa.Table.from_pylist([dict(zip(page["COLUMNS"], row)) for row in rows]))
page["main"](page["WAREHOUSE"])
"""
"""The stream of changes with twenty flights on two days."""


def test_a_table_is_kept_up_to_date_from_a_stream_of_changes(tmp_path):
    for _ in range(2):
        done = run(tmp_path, KEEP_UP, ROOT / "docs" / "keep_up.py")
        assert done.returncode == 0, done.stderr[-3000:]
        assert "4 changes went in, 4 steps of the changelog came out" in done.stdout
        assert "2 carriers agree with" in done.stdout


@pytest.mark.budget(3)
@pytest.mark.parametrize("seed", range(3))
def test_a_program_that_follows_changes_ends_with_the_same_rows_whoever_else_uses_its_tables(tmp_path, seed):
    program = tmp_path / "program.py"
    program.write_text(KEEP_UP.replace("sys.argv[1]", repr(str(ROOT / "docs" / "keep_up.py"))))
    done = living(program, tmp_path, ["strangers"], seed)
    assert done.returncode == 0, done.stderr[-3000:]


@pytest.mark.budget(3)
def test_the_quickstart_ends_with_the_same_rows_whoever_else_uses_its_tables(tmp_path, pytestconfig):
    program = tmp_path / "quickstart.py"
    code = QUICKSTART.replace("sys.argv[1]", repr(str(ROOT / "docs" / "quickstart.py")))
    program.write_text(code.replace("*sys.argv[2:] or [quickstart[\"WAREHOUSE\"]]", "quickstart[\"WAREHOUSE\"]"))
    done = living(program, tmp_path, ["strangers"], pytestconfig.option.seed)
    assert done.returncode == 0, done.stderr[-3000:]


def test_readme_has_the_two_commands_and_nothing_but_commands_in_them():
    found = re.findall(r"```sh\n(.*?)```", (ROOT / "README.md").read_text(), re.S)
    assert len(found) == 2
    assert "quickstart" in found[0]
    assert "pytest" in found[1]
    assert all(not line.startswith("#") for block in found for line in block.splitlines())
