"""Pages that `harness report --serve` keeps up to date, in a real browser."""

from contextlib import contextmanager
from threading import Thread

import pytest
import report_material as material
from report_material import wait_for

from harness.report.html.page import LivePage, LiveServer, ReportChoice
from harness.store.results import ResultStore


@contextmanager
def serve(folder, **chosen):
    with LiveServer(LivePage(folder / "results", ReportChoice(**chosen)), port=0) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


@pytest.fixture
def open_live(browser):
    """Opens a live page in a browser window of its own; the test fails if its scripts do."""
    pages, wrong = [], []

    def open_it(server, address="/"):
        page = browser.new_context().new_page()
        page.on("pageerror", lambda error: wrong.append(f"error: {error}"))
        page.goto(f"{server.address}#{address}")
        pages.append(page)
        return page

    yield open_it
    for page in pages:
        page.context.close()
    assert wrong == []


@pytest.mark.slow
def test_live_pages_of_two_browsers_take_new_evaluations(open_live, tmp_path):
    with ResultStore.open(tmp_path / "results") as store, serve(tmp_path) as server:
        store.record(material.make_evaluation("softmax", "correct", 1.2))
        pages = [open_live(server), open_live(server, "/evaluations?q=softmax")]
        for page, address in zip(pages, ("#/", "#/evaluations?q=softmax"), strict=True):
            wait_for(page, address)
        store.record(material.make_evaluation("softmax", "correct", 1.5, sample=1))
        for page in pages:
            page.get_by_text("2 evaluations").first.wait_for()
            assert page.locator("#live").inner_text() == "live"
    assert pages[1].locator("input.filter").input_value() == "softmax"
    for page in pages:
        page.get_by_text("the server has ended").wait_for()


def test_live_page_waits_for_the_first_evaluation(open_live, tmp_path):
    with ResultStore.open(tmp_path / "results") as store, serve(tmp_path) as server:
        page = open_live(server)
        assert "no evaluations in" in page.locator("body").inner_text()
        store.record(material.make_evaluation("softmax", "correct", 1.2))
        page.get_by_text("1 evaluation").first.wait_for()


@pytest.mark.slow
def test_live_page_keeps_an_open_candidate_and_takes_the_next(open_live, tmp_path):
    with ResultStore.open(tmp_path / "results") as store, serve(tmp_path) as server:
        store.record(material.make_evaluation("softmax", "correct", 1.2), material.SOURCE)
        page = open_live(server, "/candidate/1")
        wait_for(page, "#/candidate/1")
        page.evaluate("document.querySelector('.source').dataset.kept = 'yes'")
        store.record(material.make_evaluation("conv", "correct", 1.5), material.SOURCE)
        page.wait_for_function("() => DATA.index.count === 2")
        assert page.locator(".source").first.get_attribute("data-kept") == "yes"
        page.evaluate("location.hash = '#/candidate/2'")
        wait_for(page, "#/candidate/2")
        assert "conv" in page.locator("main").inner_text()
