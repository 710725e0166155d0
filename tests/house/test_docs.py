"""Every Python block of the documentation runs, in the order of its page, unless the line before says why it does not."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"(?P<before>[^\n]*)\n+```python\n(?P<code>.*?)```", re.S)


def blocks(page: Path) -> list[str]:
    return [m["code"] for m in BLOCK.finditer(page.read_text()) if not m["before"].startswith("<!-- not run")]


@pytest.mark.parametrize("page", [p for p in PAGES if blocks(p)], ids=lambda p: p.name)
def test_python_blocks_run(page, tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(blocks(page))], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]


def test_readme_has_the_two_commands_and_nothing_but_commands_in_them():
    found = re.findall(r"```sh\n(.*?)```", (ROOT / "README.md").read_text(), re.S)
    assert len(found) == 2
    assert "quickstart" in found[0]
    assert "pytest" in found[1]
    assert all(not line.startswith("#") for block in found for line in block.splitlines())
