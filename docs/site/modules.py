"""The page of all modules, made from the first sentence of each; `python docs/site/modules.py` writes the page."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "paimon_py"
PAGE = ROOT / "docs" / "modules.md"
HEAD = """# Modules

Every module of paimon_py with the first sentence of its docstring, room by room.
[Architecture](architecture.md) explains how they work together.
"""


def sentence(path: Path) -> str:
    """The first sentence of a module's docstring, on one line."""
    text = " ".join((ast.get_docstring(ast.parse(path.read_text())) or "").split("\n\n")[0].split())
    end = text.find(". ")
    return (text if end < 0 else text[: end + 1]).replace("|", "\\|").replace("<", "&lt;")


def page() -> str:
    """The whole page, as Markdown."""
    parts = [HEAD]
    rooms = sorted({path.parent for path in PACKAGE.rglob("*.py")}, key=lambda room: room.as_posix())
    for room in rooms:
        modules = [path for path in sorted(room.glob("*.py")) if path.name != "__init__.py"]
        opening = room / "__init__.py"
        parts.append(f"\n## {room.relative_to(ROOT).as_posix()}\n")
        if opening.exists():
            parts.append(f"\n{sentence(opening)}\n")
        if modules:
            rows = "\n".join(f"| `{path.relative_to(PACKAGE).as_posix()}` | {sentence(path)} |" for path in modules)
            parts.append(f"\n| module | what it contains |\n|---|---|\n{rows}\n")
    return "".join(parts)


if __name__ == "__main__":
    PAGE.write_text(page())
