"""The notebooks of the documentation run from the first cell to the last, twice in one directory, and answer as they say."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "docs" / "notebooks"
NAMES = ("first-hour", "live-changes")


def cells(name):
    return json.loads((FOLDER / f"{name}.ipynb").read_text(encoding="utf-8"))["cells"]


def test_these_are_all_notebooks():
    assert sorted(path.stem for path in FOLDER.glob("*.ipynb")) == sorted(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_notebooks_are_kept_without_outputs(name):
    code = [cell for cell in cells(name) if cell["cell_type"] == "code"]
    assert [cell for cell in code if cell["outputs"] or cell["execution_count"] is not None or cell["metadata"]] == []
    assert len({cell["id"] for cell in cells(name)}) == len(cells(name))


@pytest.fixture
def kernel(tmp_path, monkeypatch):
    """A kernel of this interpreter, whatever kernels the machine has."""
    nbclient = pytest.importorskip("nbclient", reason="notebooks need nbclient and ipykernel, of the extra dev")
    pytest.importorskip("ipykernel", reason="notebooks need nbclient and ipykernel, of the extra dev")
    place = tmp_path / "jupyter" / "kernels" / "python3"
    place.mkdir(parents=True)
    root = str(FOLDER.parents[1])
    spec = {
        "argv": [sys.executable, "-W", "ignore", "-m", "ipykernel_launcher", "-f", "{connection_file}"],
        "display_name": "Python 3", "language": "python",
        "env": {"PYTHONPATH": os.pathsep.join([root, *filter(None, [os.environ.get("PYTHONPATH")])])},
    }  # fmt: skip
    (place / "kernel.json").write_text(json.dumps(spec))
    for variable in ("JUPYTER_PATH", "JUPYTER_DATA_DIR"):
        monkeypatch.setenv(variable, str(tmp_path / "jupyter"))
    for variable in ("JUPYTER_CONFIG_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR"):
        monkeypatch.setenv(variable, str(tmp_path / variable.lower()))
    return nbclient


def run(nbclient, directory):
    """What the cells of both notebooks show, run twice one after the other by one kernel: its start is what costs."""
    import nbformat

    notebook = nbformat.v4.new_notebook()
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3"}
    for _ in range(2):
        for name in NAMES:
            notebook.cells += [nbformat.v4.new_code_cell("".join(cell["source"])) for cell in cells(name) if cell["cell_type"] == "code"]
    nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(directory)}}).execute()
    return ["".join(map(said, cell["outputs"])) for cell in notebook.cells]


def said(output):
    if output["output_type"] == "stream":
        return output["text"]
    data = output["data"]
    return data["text/plain"] + data.get("text/html", "")


EXPECTED = [
    "b>Table shop.orders</b", "CommitResult", r"green\]", r"green tea\s+3\.00\s+\[hot, green\]", r"cake\s+5\.00",
    "UsageError: column 'itme' does not exist; did you mean 'item'\\?", "<b>Scan", r"\{'id': 2, 'item': 'cake'", "skipped",
    r"\(1, 'APPEND', 3\)", r"cake\s+4\.00", "<b>Snapshot", r"tea\s+3\.50\s+\[hot\]\s+True", "<b>Catalog", "record_count",
    r"c\s+attic\s+14\.0\s+-D", r"'degrees': 21\.0, '_row_kind': '\+I'", r"\+I a 21\.0\n\+I b 20\.0", r"-U b 20\.0\n\+U b 22\.5\n\+I d 11\.0",
    r"Consumer\(name='report'", r"'file_count': 4, 'record_count': 96", r"\(96, 96, 'rows'\)\n", r"'level': 5, 'file_count': 1, 'record_count': 60",
    r"2\s+┆ 12\s+┆ 3\.59", r"\('cellar', 11\.0\), \('hall', 21\.75\)", "ExpiredSnapshots",
]  # fmt: skip
"""What the notebooks show, in this order."""


def test_notebooks_run_twice_in_one_directory_and_show_what_they_should(kernel, tmp_path):
    shown = run(kernel, tmp_path)
    half = len(shown) // 2
    for turn in (shown[:half], shown[half:]):
        text, place = "\n".join(turn), 0
        for wanted in EXPECTED:
            found = re.compile(wanted).search(text, place)
            assert found, f"{wanted!r} is not shown after {text[place:place + 500]!r}"
            place = found.end()
    assert sorted(path.name for path in tmp_path.glob("warehouse-*")) == ["warehouse-first-hour", "warehouse-live-changes"]
