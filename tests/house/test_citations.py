"""Every page, section, decision and module that a docstring, a comment or a page cites is there."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", ROOT / "benchmarks" / "README.md", *sorted(DOCS.rglob("*.md"))]
NUMBERED = ("format.md", "reliability.md")
SOURCES = [*sorted((ROOT / "paimon_py").rglob("*.py")), *sorted((ROOT / "tests").rglob("*.py"))]

_HEADING = re.compile(r"^#{2,4} (?:(\d+(?:\.\d+)*)\b|\(([a-z])\))", re.M)
_PAGE = re.compile(r"(?<![\w*])((?:[\w-]+/)*[\w-]+\.md)\b")
_SECTIONS = re.compile(r"(?<![\w*])([\w-]+\.md),?((?:[\s,;-]|and|§\s?\d+(?:\.\d+)*|-?\d+\.\d+|\([a-z]\))+)")
_SECTION = re.compile(r"§\s?(\d+(?:\.\d+)*)(?:-(\d+\.\d+))?")
_LETTER = re.compile(r"\(([a-z])\)")
_DECISION = re.compile(r"(?:docs/decisions/|\b[Dd]ecision )(\d+)")
_FOLDER = re.compile(r"\bdocs/([\w-]+)(?![\w/.-]*\.\w)")
_MODULE = re.compile(r"`((?:[a-z_]+/)*[a-z_]+\.py)`")
_CITES = re.compile(r"\.md\b|§|docs/|[Dd]ecision \d|\.py`")
_LINK = re.compile(r"\]\((?!https?:|mailto:)([^)#\s]*)(?:#([^)\s]*))?\)")


def headings(page: Path) -> set[str]:
    """The numbers and letters that the headings of a page begin with."""
    return {number or letter for number, letter in _HEADING.findall(page.read_text())}


def signs(path: Path) -> Iterator[tuple[int, str]]:
    """Line and text of every string that stands alone and of every run of comments, where a file cites anything."""
    source = path.read_text()
    if not _CITES.search(source):
        return
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.lineno, node.value.value
    comments = [t for t in tokenize.generate_tokens(io.StringIO(source).readline) if t.type == tokenize.COMMENT]
    run: list[str] = []
    for comment, following in zip(comments, [*comments[1:], None]):
        run.append(comment.string.lstrip("# "))
        if following is None or following.start[0] != comment.start[0] + 1:
            yield comment.start[0], " ".join(run)
            run = []


def dead(text: str, beside: Path, numbers: dict[str, set[str]], *, own: str | None = None) -> list[str]:
    """What a text cites and is not there.

    `beside`: the folder in which pages may lie without their path. `own`: the page whose sections a bare § names.
    """
    text = re.sub(r"\s+", " ", text)
    missing = []
    for page in _PAGE.findall(text):
        folders = (beside,) if page == "README.md" else (beside, DOCS, ROOT)
        if not any((folder / page).is_file() for folder in folders):
            missing.append(f"no page {page}")
    for module in _MODULE.findall(text):
        if not any((folder / module).is_file() for folder in (beside, ROOT, ROOT / "paimon_py", ROOT / "tests")):
            missing.append(f"no module {module}")
    for page, places in [*_SECTIONS.findall(text), (own, _SECTIONS.sub(" ", text))]:
        cited = [number for pair in _SECTION.findall(places) for number in pair if number]
        if page == "reliability.md":
            cited += _LETTER.findall("".join(re.findall(r"§3 (?:\([a-z]\)(?:, | and )?)+", places)))
        if cited and page not in numbers:
            missing.append(f"{page or 'no page'} has no numbered sections")
        elif cited:
            missing += [f"{page} has no §{number}" for number in cited if number not in numbers[page]]
    for number in _DECISION.findall(text):
        if not list((DOCS / "decisions").glob(f"{int(number):04}-*.md")):
            missing.append(f"no decision {number}")
    return missing + [f"no docs/{folder}" for folder in _FOLDER.findall(text) if not (DOCS / folder).is_dir()]


@pytest.fixture(scope="module")
def numbers() -> dict[str, set[str]]:
    return {name: headings(DOCS / name) for name in NUMBERED}


def test_what_docstrings_and_comments_cite_is_there(numbers):
    found = [
        f"{path.relative_to(ROOT)}:{line}: {fault}"
        for path in SOURCES
        for line, text in signs(path)
        for fault in dead(text, path.parent, numbers)
    ]
    assert found == []


@pytest.mark.parametrize(
    ("text", "faults"),
    [
        ("Source: format.md §5.4, §7; Java `X`; reliability.md §3 (c), (l) and §6.", []),
        ("Source: format.md §8.3-8.5, §9.", []),
        ("Source: format.md §99.", ["format.md has no §99"]),
        ("Source: format.md §5.4,\n  §5.77; decision 8", ["format.md has no §5.77"]),
        ("see reliability.md §3 (z)", ["reliability.md has no §z"]),
        ("see docs/stores.md §1", ["stores.md has no numbered sections"]),
        ("notes on nothing §3", ["no page has no numbered sections"]),
        ("see nowhere.md", ["no page nowhere.md"]),
        ("measurements in docs/performance.", ["no docs/performance"]),
        ("docs/decisions/0099", ["no decision 0099"]),
        ("as `spec/types.py` and `test_citations.py` do", ["no module test_citations.py"]),
    ],
)
def test_a_dead_citation_is_seen(text, faults, numbers):
    assert dead(text, DOCS, numbers) == faults


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_and_citations_of_pages_lead_somewhere(page, numbers):
    text = page.read_text()
    assert [target for target, _ in _LINK.findall(text) if target and not (page.parent / target).exists()] == []
    bare = re.sub(r"\[[^\]]*\]\(([^)]*)\)", r"\1", text)
    assert dead(bare, page.parent, numbers, own=page.name if page.name in numbers else None) == []


def test_anchors_of_links_are_headings():
    dead_anchors = []
    for page in PAGES:
        for target, anchor in _LINK.findall(page.read_text()):
            aim = page.parent / target if target else page
            if anchor and aim.is_file() and anchor not in anchors(aim):
                dead_anchors.append(f"{page.name}: {target}#{anchor}")
    assert dead_anchors == []


def anchors(page: Path) -> set[str]:
    """Anchors of headings as GitHub makes them."""
    names = re.findall(r"^#+ (.*)$", page.read_text(), re.M)
    return {re.sub(r"[^\w\- ]", "", name.lower()).replace(" ", "-") for name in names}
