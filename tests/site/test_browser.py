"""The built site in a browser: nothing fails to load, search finds, pictures show, and a phone need not scroll sideways."""

from __future__ import annotations

import functools
import http.server
import shutil
import threading

import pytest

from paimon_py import Catalog, Schema, col

pytestmark = pytest.mark.full
PHONE, DESK = {"width": 360, "height": 740}, {"width": 1280, "height": 900}


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Serves files without a line for each."""

    def log_message(self, *_):
        """Nothing."""


@pytest.fixture(scope="module")
def address(site):
    """Where the site is served."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(site))) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def browser():
    """A browser of this machine, without a window."""
    sync = pytest.importorskip("playwright.sync_api")
    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if program is None:
        pytest.skip("no chromium on this machine")
    with sync.sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield opened
        opened.close()


def visited(browser, url, **settings):
    """A page, and what went wrong while the page was loaded."""
    page, wrong = browser.new_page(**settings), []
    page.on("requestfailed", lambda request: wrong.append(request.url))
    page.on("response", lambda answer: wrong.append(answer.url) if answer.status >= 400 else None)
    page.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
    page.on("request", lambda request: wrong.append(request.url) if "127.0.0.1" not in request.url else None)
    page.goto(url)
    page.wait_for_load_state("load")
    return page, wrong


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("screen", [PHONE, DESK], ids=["phone", "desk"])
def test_every_page_is_shown_whole(site, address, browser, screen, scheme):
    found = {}
    for path in sorted(file.relative_to(site).as_posix() for file in site.rglob("*.html")):
        page, wrong = visited(browser, address + path, viewport=screen, color_scheme=scheme)
        if page.evaluate("document.documentElement.scrollWidth > innerWidth"):
            wrong.append("wider than the screen")
        unseen = "Array.from(document.images).filter(i => i.complete && !i.naturalWidth).map(i => i.src)"
        wrong.extend(page.evaluate(unseen))
        if page.evaluate("document.body.getAttribute('data-md-color-scheme')") != {"light": "default"}.get(scheme, "slate"):
            wrong.append(f"not {scheme}")
        page.close()
        if wrong:
            found[path] = wrong
    assert found == {}


ASKED = {
    "time travel": ("getting-started", "concepts/snapshots"),
    "data types": ("types",),
    "compact": ("compaction",),
    "deletion vectors": ("concepts/lsm",),
    "backup": ("howto/copy-table",),
    "exactly once": ("howto/load-files", "howto/many-writers"),
    "hive metastore": ("catalogs",),
    "merge engine": ("concepts/merge-engines",),
    "how many buckets": ("buckets",),
    "snapshot.time-retained": ("options", "concepts/snapshots", "care", "howto/"),
    "s3": ("stores",),
    "pandas": ("frames",),
    "idempotent": ("howto/many-writers",),
}
"""What people type, and the pages of which one has to come first."""


@pytest.mark.parametrize("words", ASKED)
def test_what_people_type_leads_to_the_page(address, browser, words):
    page, wrong = visited(browser, address, viewport=DESK)
    page.fill("input.md-search__input", words)
    page.wait_for_selector(".md-search-result__item", timeout=30_000)
    first = page.locator(".md-search-result__item a").first.get_attribute("href")
    assert any(f"/{place}" in first for place in ASKED[words]), first
    assert wrong == []
    page.close()


@pytest.mark.parametrize("words", ["deletion-vectors.enabled", "expire_snapshots", "partial-update", "CommitUnknownError"])
def test_the_search_finds(address, browser, words):
    page, wrong = visited(browser, address, viewport=DESK)
    page.fill("input.md-search__input", words)
    page.wait_for_selector(".md-search-result__item", timeout=30_000)
    first = page.inner_text(".md-search-result__list")
    assert words.lower() in first.lower() and wrong == []
    page.close()


@pytest.fixture(scope="module")
def cells(tmp_path_factory):
    """Pages of notebooks as a page of their own: values of a table with long and hostile names, one below the other."""
    evil = "<script>document.title='run'</script><img src=x onerror=\"document.title='run'\">"
    catalog = Catalog.open(str(tmp_path_factory.mktemp("cells") / "w"))
    catalog.create_database("d")
    columns = [(evil, "INT", evil), ("long", "ROW<a ARRAY<MAP<STRING, DECIMAL(38, 18)>>, b TIMESTAMP(9)>", "word " * 60), ("x" * 200, "INT", "y" * 200)]
    table = catalog.create_table("d.t", Schema([*columns, *((f"c{number}", "INT") for number in range(40))]), comment=evil)
    empty = [table._repr_html_(), table.scan()._repr_html_()]
    result = table.write_arrow([{evil: 1}])
    scan = table.scan(where=col(evil) == 1)
    values = [catalog, table, table.schema, scan, scan.explain(), table.snapshot(), result, table.analyze(columns=["c1"]), table.system("files")]
    body = "".join(f"<div>{page}</div>" for page in (*empty, *(value._repr_html_() for value in values)))
    return f"<meta charset=utf-8><style>:root{{color-scheme:light dark}}</style><title>cells</title>{body}"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("screen", [PHONE, DESK], ids=["phone", "desk"])
def test_pages_of_notebooks_fit_and_run_nothing(cells, browser, screen, scheme):
    page = browser.new_page(viewport=screen, color_scheme=scheme)
    page.set_content(cells, wait_until="load")
    assert page.title() == "cells" and page.evaluate("document.images.length + document.scripts.length") == 0
    assert not page.evaluate("document.documentElement.scrollWidth > innerWidth")
    seen = "Array.from(document.querySelectorAll('td')).every(cell => cell.innerText === '' || cell.offsetWidth > 0)"
    assert page.evaluate("document.querySelectorAll('td').length") > 100 and page.evaluate(seen)
    colours = {"light": "rgb(0, 0, 0)", "dark": "rgb(255, 255, 255)"}
    assert {page.evaluate("getComputedStyle(document.querySelector('td')).color")} == {colours[scheme]}
    page.close()
