"""Notebooks as pages: their cells are run, and what they show stands below them.

A plain Python runs the cells, without Jupyter: a build of the site takes a second for each notebook, and shows what a
reader of this version sees.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "docs" / "notebooks"
NAMES = ("first-hour", "live-changes")


def page(name: str) -> str:
    """The Markdown of a notebook with what its cells show."""
    with tempfile.TemporaryDirectory() as directory:
        command = [sys.executable, str(Path(__file__).resolve()), str(FOLDER / f"{name}.ipynb")]
        path = {"PYTHONPATH": str(ROOT), "PATH": "", "TZ": "UTC"}
        done = subprocess.run(command, cwd=directory, env=path, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"{name}.ipynb: {done.stderr}")
        shown = json.loads(done.stdout.replace(str(Path(directory).resolve()), "/home/you"))
    return "\n\n".join([*shown, f"[Download this notebook]({name}.ipynb)"]) + "\n"


def parts(notebook: Path) -> list[str]:
    """The cells of a notebook as Markdown, each piece of code followed by what it shows."""
    names: dict[str, Any] = {"__name__": "__main__"}
    found = []
    for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"]:
        text = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            found.append(text)
            continue
        printed, value = answer(text, names)
        found.append(f"```python\n{text}\n```")
        if printed:
            found.append(f"```text\n{printed}```")
        if value is not None:
            found.append(shown(value))
    return found


def answer(code: str, names: dict[str, Any]) -> tuple[str, Any]:
    """What a cell prints, and the value of the expression at its end."""
    body = ast.parse(code)
    last = body.body.pop() if isinstance(body.body[-1], ast.Expr) else None
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(body, "cell", "exec"), names)
        value = None if last is None else eval(compile(ast.Expression(last.value), "cell", "eval"), names)
    return out.getvalue(), value


def shown(value: Any) -> str:
    """A value as a notebook shows it."""
    page_of = getattr(value, "_repr_html_", None)
    if page_of is None:
        return f"```text\n{value!r}\n```"
    text = re.sub(r"\s*\n\s*", "\n", page_of())
    return f'<div class="notebook-output">\n{text}\n</div>'


if __name__ == "__main__":
    print(json.dumps(parts(Path(sys.argv[1]))))
