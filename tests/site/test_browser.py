"""The built site in a browser: nothing fails to load, search finds, pictures show, and a phone need not scroll sideways."""

from __future__ import annotations

import functools
import http.server
import shutil
import threading

import pytest

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
