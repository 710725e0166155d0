"""Programs of the documentation pass mypy --strict; and pyright, where it is installed, which finds the same mistakes."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from house.test_docs import RUNNING, blocks

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "tests" / "house" / "typing_examples.py"


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    """The Python blocks of each page as one program."""
    directory = tmp_path_factory.mktemp("programs")
    for page in RUNNING:
        name = re.sub(r"\W", "_", page.relative_to(ROOT).with_suffix("").as_posix())
        (directory / f"page_{name}.py").write_text("\n".join(blocks(page)))
    return directory


def test_programs_of_the_documentation_pass_mypy(programs):
    files = sorted(map(str, programs.glob("*.py")))
    assert len(files) > 5
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file", str(ROOT / "pyproject.toml"), *files]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.full
def test_programs_of_the_documentation_pass_pyright(programs):
    pytest.importorskip("basedpyright")
    wrong = EXAMPLES.read_text().replace("  # type: ignore[arg-type]", "  # wrong")
    (programs / "examples.py").write_text(wrong)
    settings = {"include": ["."], "extraPaths": [str(ROOT)], "typeCheckingMode": "standard"}
    (programs / "pyrightconfig.json").write_text(json.dumps(settings))
    command = [sys.executable, "-m", "basedpyright", "-p", str(programs), "--outputjson", "--pythonpath", sys.executable]
    done = subprocess.run(command, cwd=programs, capture_output=True, text=True, check=False)
    found = [each for each in json.loads(done.stdout)["generalDiagnostics"] if each["severity"] == "error"]
    known = [each for each in found if "pyarrow.compute" not in each["message"]]  # made when pyarrow is imported
    pages = [each for each in known if not each["file"].endswith("examples.py")]
    assert pages == []
    marked = {number for number, line in enumerate(wrong.splitlines()) if "# wrong" in line}
    assert {each["range"]["start"]["line"] for each in known} == marked
