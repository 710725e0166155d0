"""The documentation site builds, and nothing on its pages leads nowhere or is loaded from elsewhere."""

from __future__ import annotations

import html
import html.parser
import json
import re
import runpy
import urllib.parse
from pathlib import Path

import pytest

from paimon_py.metastores.options import OF_ALL, OF_KINDS
from paimon_py.spec.options import OPTIONS

ROOT = Path(__file__).parents[2]
PARTS = {"a": "href", "img": "src", "script": "src", "link": "href", "source": "src", "iframe": "src"}


class Found(html.parser.HTMLParser):
    """Links, anchors and pictures of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[tuple[str, str]] = []
        self.anchors: set[str] = set()
        self.unnamed: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        said = dict(attributes)
        self.anchors.update(filter(None, (said.get("id"), said.get("name") if tag == "a" else None)))
        if tag in PARTS and said.get(PARTS[tag]) is not None and said.get("rel") != "canonical":
            self.links.append((tag, said[PARTS[tag]]))
        if tag == "img" and not said.get("alt"):
            self.unnamed.append(said.get("src", ""))


@pytest.fixture(scope="module")
def pages(site):
    return {page: Found(page.read_text(encoding="utf-8")) for page in sorted(site.rglob("*.html"))}


def test_every_link_leads_somewhere(site, pages):
    lost = [
        (page.relative_to(site).as_posix(), link)
        for page, found in pages.items()
        if page.name != "404.html"
        for _, link in found.links
        if not leads_somewhere(page, link, pages)
    ]
    assert lost == []


def leads_somewhere(page, link, pages):
    """Whether a link within the site has a target, and its anchor is there. Links to other sites are not asked."""
    url = urllib.parse.urlsplit(link)
    if url.scheme or url.netloc:
        return True
    target = (page.parent / urllib.parse.unquote(url.path)).resolve() if url.path else page
    anchor = urllib.parse.unquote(url.fragment)
    return target.is_file() and (not anchor or target not in pages or anchor in pages[target].anchors)


def test_nothing_is_loaded_from_elsewhere(site, pages):
    away = [
        (page.name, link)
        for page, found in pages.items()
        for tag, link in found.links
        if tag != "a" and urllib.parse.urlsplit(link).netloc
    ]
    assert away == []


def test_pictures_are_described(pages):
    assert {page.name: found.unnamed for page, found in pages.items() if found.unnamed} == {}


def test_the_search_knows_the_words_of_the_field(site):
    known = json.loads((site / "search" / "search_index.json").read_text(encoding="utf-8"))["docs"]
    text = " ".join(entry["title"] + " " + entry["text"] for entry in known)
    for word in ("deletion-vectors.enabled", "write_arrow", "partial-update", "changelog-producer", "remove_orphans"):
        assert word in text


def test_each_option_has_an_anchor(site, pages):
    wanted = {*OPTIONS, *OF_ALL, *(name for names in OF_KINDS.values() for name in names)}
    assert wanted - pages[site / "options.html"].anchors == set()


def test_values_show_what_they_are_made_of(site):
    text = (site / "reference" / "schema.html").read_text(encoding="utf-8")
    signature = html.unescape(re.sub(r"<[^>]+>", "", text[text.index('id="paimon_py.spec.schema_changes.AddColumn"') :]))
    assert re.search(r"AddColumn\(\s*column: Path,\s*type: Any,\s*comment: str \| None = None,", signature)


def test_pictures_are_those_that_are_drawn():
    drawn = runpy.run_path(str(ROOT / "docs" / "site" / "pictures.py"))
    for name, draw in drawn["PICTURES"].items():
        assert (drawn["HERE"] / f"{name}.svg").read_text(encoding="utf-8") == draw(), "run python docs/site/pictures.py"


def test_attributes_that_share_a_line_are_listed_one_by_one(site):
    text = (site / "reference" / "care.html").read_text(encoding="utf-8")
    assert ">earliest_id</span>" in text and ">latest_id</span>" in text


def test_objects_that_calls_make_show_no_constructor(site):
    text = html.unescape(re.sub(r"<[^>]+>", "", (site / "reference" / "errors.html").read_text(encoding="utf-8")))
    assert "PaimonError" in text and "PaimonError(" not in text


def test_the_page_of_options_is_the_one_that_is_made():
    made = runpy.run_path(str(ROOT / "docs" / "site" / "options.py"))
    assert made["PAGE"].read_text(encoding="utf-8") == made["page"](ROOT / "paimon_py"), "run python docs/site/options.py"


def test_the_page_of_modules_is_the_one_that_is_made():
    made = runpy.run_path(str(ROOT / "docs" / "site" / "modules.py"))
    assert made["PAGE"].read_text(encoding="utf-8") == made["page"](), "run python docs/site/modules.py"
