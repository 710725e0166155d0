"""Steps of the site's build: pages outside docs/ are shown too, and links to them lead there; notebooks are run."""

from __future__ import annotations

import functools
import re
import runpy
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[2]
LINK = re.compile(r"\]\(([^)#:]+)")
OPTION = re.compile(r"(?<=<tr>\n)<td><code>([a-z][\w.#-]+)</code></td>", re.I)
OUTSIDE = {"CHANGELOG.md": "changelog.md", "benchmarks/README.md": "benchmarks.md"}
"""Pages outside docs/, by their path in the project, and where the site shows them."""


WEIGHTS = {
    **dict.fromkeys(("decisions/", "changelog.md"), 0.1),
    **dict.fromkeys(("reference/", "options.md"), 0.4),
    **dict.fromkeys(("format.md", "benchmarks.md", "reliability.md", "contributing.md"), 0.4),
    **dict.fromkeys(("getting-started.md", "howto/", "concepts/", "types.md", "compaction.md"), 2),
}
"""How much a page counts in the search, by how the path begins: tasks come before the history of the project."""


def on_files(files: Files, *, config: Any) -> Files:
    """Add the pages outside docs/, and the notebooks with what they show."""
    for path, page in OUTSIDE.items():
        folder = Path(path).parent.as_posix()
        text = LINK.sub(functools.partial(_inward, folder), (ROOT / path).read_text(encoding="utf-8"))
        files.append(File.generated(config, page, content=text))
    notebooks = runpy.run_path(str(ROOT / "docs" / "site" / "notebooks.py"))
    for name in notebooks["NAMES"]:
        files.append(File.generated(config, f"notebooks/{name}.md", content=notebooks["page"](name)))
    return files


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """Lead links out of docs/ to where the site shows these pages."""
    for path, weight in WEIGHTS.items():
        if page.file.src_uri.startswith(path):
            page.meta["search"] = {"boost": weight}
    up = "../" * page.file.src_uri.count("/")
    for path, shown in OUTSIDE.items():
        markdown = markdown.replace(f"]({up}../{path}", f"]({up}{shown}")
    if page.file.src_uri == "notebooks/index.md":
        markdown = markdown.replace(".ipynb)", ".md)")  # the page of a notebook, where its file can be downloaded
    return markdown.replace(f"]({up}../README.md", f"]({up}index.md")


def on_page_content(html: str, *, page: Any, **_: Any) -> str:
    """Give each option an anchor, `options.html#bucket-key`, and the page a class of its own."""
    if page.file.src_uri != "options.md":
        return html
    return '<div class="options">' + OPTION.sub(r'<td id="\1"><code>\1</code></td>', html) + "</div>"


def _inward(folder: str, link: re.Match[str]) -> str:
    """A link of a page outside docs/ as seen from the top of docs/."""
    path = link[1] if folder == "." else f"{folder}/{link[1]}"
    parts: list[str] = []
    for part in path.split("/"):
        if part == "..":
            parts.pop()
        elif part != ".":
            parts.append(part)
    inner = "/".join(parts)
    return f"]({OUTSIDE.get(inner, inner.removeprefix('docs/'))}"
