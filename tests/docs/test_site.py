"""The built site in a real browser: search results, loaded files, and whether pages fit the window (`make test-site`)."""

from __future__ import annotations

import functools
import http.server
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

SITE = Path(os.environ["PENSTOCK_SITE"])
# Queries, each with a page that must be among the first three results.
QUERIES = {
    "flip": "operators/flip.html",
    "normalize": "operators/normalize.html",
    "decoders.image": "operators/decoders.image.html",
    "fn.resize": "operators/resize.html",
    "crop_mirror_normalize": "operators/crop_mirror_normalize.html",
    "mel spectrogram": "operators/mel_filter_bank.html",
    "external source": "operators/external_source.html",
    "install": "install.html",
    "pip": "install.html",
    "batch size": "glossary.html",
    "kubernetes": "tutorials/deploy.html",
    "systemd": "tutorials/deploy.html",
    "onnx": "tutorials/your-own-network.html",
    "upgrade": "tutorials/upgrade.html",
    "conditional": "tutorials/conditionals.html",
    "metrics": "watching-a-server.html",
    "dali": "coming-from-dali.html",
    "torchvision": "torchvision.html",
    "s3": "object-storage.html",
    "api key": "facing-a-network.html",
    "python 3.14": "supported-pythons.html",
    "cuda version": "versions.html",
    "ensemble": "tutorials/serve-an-ensemble.html",
    "corrupt image": "tutorials/errors-and-isolation.html",
}
# Searches with the theme's worker. The types of its messages: set up (0), ready (1), query (2), result (3).
_SEARCH = """
async queries => {
  const config = JSON.parse(document.getElementById("__config").textContent)
  const index = await (await fetch("search/search_index.json")).json()
  const worker = new Worker(config.search)
  const answer = type => new Promise(resolve => worker.addEventListener("message", function take({ data }) {
    if (data.type !== type) return
    worker.removeEventListener("message", take)
    resolve(data.data)
  }))
  const ready = answer(1)
  worker.postMessage({ type: 0, data: { ...index, options: { suggest: false } } })
  await ready
  const found = {}
  for (const query of queries) {
    const result = answer(3)
    worker.postMessage({ type: 2, data: query })
    found[query] = (await result).items.slice(0, 5).map(([page]) => page.location.split("#")[0])
  }
  return found
}
"""
MINUTES = 60_000
PAGES = (
    "index.html",
    "install.html",
    "same-pixels.html",
    "operators/resize.html",
    "tutorials/deploy.html",
    "versions.html",
)


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *arguments: Any) -> None:
        pass


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    handler = functools.partial(_Quiet, directory=str(SITE))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Yield Playwright's Chromium, or the one that CHROMIUM names."""
    with sync_playwright() as playwright:
        program = os.environ.get("CHROMIUM")
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    page = browser.new_page()
    page.set_default_timeout(3 * MINUTES)
    yield page
    page.close()


@pytest.fixture(scope="module")
def found(browser: Browser, address: str) -> dict[str, list[str]]:
    page = browser.new_page()
    page.goto(address + "index.html")
    results: dict[str, list[str]] = page.evaluate(_SEARCH, list(QUERIES))
    page.close()
    return results


@pytest.mark.parametrize(("query", "meant"), QUERIES.items())
def test_the_right_page_is_among_the_first_three(query: str, meant: str, found: dict[str, list[str]]) -> None:
    assert (SITE / meant).is_file()
    assert meant in found[query][:3]


def test_decisions_are_not_searched(found: dict[str, list[str]]) -> None:
    assert not [page for pages in found.values() for page in pages if page.startswith(("decisions/", "changelog"))]


@pytest.mark.parametrize("as_file", [False, True], ids=["http", "file"])
def test_the_box_finds_an_operator(as_file: bool, page: Page, address: str) -> None:
    page.goto(SITE.resolve().as_uri() + "/index.html" if as_file else address + "index.html")
    box = page.locator(".md-search__input")
    box.click()
    box.press_sequentially("decoders.image")
    link = page.locator(".md-search-result__link[href*='decoders.image.html']").first
    link.wait_for()
    link.click()
    page.wait_for_url("**/operators/decoders.image.html*")


@pytest.mark.parametrize("path", PAGES)
def test_no_request_leaves_the_site(path: str, page: Page, address: str) -> None:
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    page.goto(address + path, wait_until="networkidle")
    assert [url for url in requests if not url.startswith((address, "data:", "blob:"))] == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [400, 1400])
@pytest.mark.parametrize("path", PAGES)
def test_pages_fit(path: str, width: int, scheme: Any, browser: Browser, address: str) -> None:
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page.goto(address + path, wait_until="networkidle")
    sideways, height = page.evaluate("[document.documentElement.scrollWidth, document.documentElement.scrollHeight]")
    if folder := os.environ.get("SCREENSHOTS"):
        page.screenshot(path=Path(folder, f"{Path(path).stem}-{width}-{scheme}.png"))
    page.close()
    assert sideways <= width
    assert height <= 40_000 if width == 400 else height <= 16_000
