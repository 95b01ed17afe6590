"""The report's page in a real browser: Debian's Chromium, driven by playwright, offline."""

import shutil

import pytest
import report_material as material
from report_material import wait_for

from harness.report.html.page import ReportChoice, render_report
from harness.store.results import ResultStore

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")


@pytest.fixture(scope="module")
def browser():
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if CHROMIUM is None:
        pytest.skip("no Chromium: apt-get install chromium")
    with playwright.sync_playwright() as player:
        chromium = player.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield chromium
        chromium.close()


@pytest.fixture(scope="module")
def write_report(tmp_path_factory):
    """Writes a report of what `fill(store, generated)` stores, and returns its path."""

    def write(fill, **options):
        folder = tmp_path_factory.mktemp("report")
        problems = folder / "problems" / "core"
        problems.mkdir(parents=True)
        (problems / "softmax.py").write_text(material.REFERENCE)
        with ResultStore.open(folder / "results") as store:
            fill(store, folder / "generated")
            folders = {"generated_dir": folder / "generated", "problems_dirs": [folder / "problems"]}
            render_report(store, folder / "report.html", ReportChoice(**folders, **options), now=material.NOW)
        return folder / "report.html"

    return write


@pytest.fixture(scope="module")
def honest(write_report):
    return write_report(material.store_honest)


def open_watched(browser, path, wrong, *, width=1280, **options):
    """A page of a context of its own; requests to the network, errors and dialogs are added to `wrong`."""
    context = browser.new_context(viewport={"width": width, "height": 900}, offline=True, **options)
    page = context.new_page()
    page.on("pageerror", lambda error: wrong.append(f"error: {error}"))
    page.on("console", lambda message: wrong.append(message.text) if message.type in ("error", "warning") else None)
    page.on("dialog", lambda dialog: (wrong.append(f"dialog: {dialog.message}"), dialog.dismiss()))
    page.on(
        "request", lambda request: wrong.append(request.url) if request.url.split("#")[0] != path.as_uri() else None
    )
    return page


@pytest.fixture
def open_page(browser):
    """Opens an address of a report; the test fails if anything is asked of the network, or anything breaks or runs."""
    pages, wrong = [], []

    def open_it(path, address="/", **options):
        page = open_watched(browser, path, wrong, **options)
        pages.append(page)
        page.goto(f"{path.as_uri()}#{address}")
        wait_for(page, f"#{address}")
        return page

    yield open_it
    for page in pages:
        page.context.close()
    assert wrong == []


@pytest.fixture(scope="module")
def honest_page(browser, honest):
    """A page of the honest report for all tests that only read, and what went wrong in it."""
    wrong = []
    page = open_watched(browser, honest, wrong)
    yield page, wrong
    page.context.close()


@pytest.fixture
def visit(honest_page, honest):
    """Leads the shared page to an address."""
    page, wrong = honest_page

    def go(address):
        page.goto(f"{honest.as_uri()}#{address}")
        wait_for(page, f"#{address}")
        return page

    yield go
    assert wrong == []
