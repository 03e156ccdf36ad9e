"""The HTML form in a real browser: no complaint, no overflow at three widths, works by keyboard."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from report_browser import Page, browser, find_chromium
from report_helpers import RUN_SMALL
from reports.build import make_report
from reports.html import render_html

CHROMIUM = find_chromium()
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine (Debian: apt install chromium)")

WIDTHS = (360, 768, 1440)

OVERFLOW = """
(() => {
  const wide = document.documentElement.clientWidth;
  const scrolls = (node) => { for (; node; node = node.parentElement) {
    if (/auto|scroll|hidden/.test(getComputedStyle(node).overflowX)) return true; } return false; };
  return [document.documentElement.scrollWidth - wide, ...Array.from(document.querySelectorAll('body *'))
    .filter((node) => !node.closest('svg') && !node.classList.contains('skip')
      && node.getBoundingClientRect().right > wide + 1 && !scrolls(node.parentElement))
    .map((node) => node.tagName + '.' + node.className).slice(0, 5)];
})()
"""


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("html") / "report.html"
    file.write_text(render_html(make_report(RUN_SMALL)), encoding="utf-8")
    return file


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        with browser(CHROMIUM or "", Path(profile)) as found:
            yield found


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
def test_loads_without_complaint_and_fits(page: Page, path: Path, tmp_path: Path, width: int, dark: bool):
    page.open(path, width=width, dark=dark)
    assert page.evaluate("innerWidth") == width
    assert page.evaluate(OVERFLOW) == [0]
    assert page.messages == []
    assert page.requests == [path.resolve().as_uri()], "the page asked for something"
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert background == ("rgb(15, 20, 25)" if dark else "rgb(255, 255, 255)")
    page.screenshot(tmp_path / "page.png")
    assert (tmp_path / "page.png").stat().st_size > 100_000, "an almost empty picture"


def test_opened_sections_fit_too(page: Page, path: Path):
    page.open(path, width=360)
    page.evaluate("document.querySelectorAll('details').forEach((entry) => { entry.open = true; })")
    assert page.evaluate(OVERFLOW) == [0]


def test_sorting(page: Page, path: Path):
    page.open(path, width=1440)
    column = "Array.from(document.querySelectorAll('#queries-table tbody tr')).map((row) => row.cells[3].dataset.sort)"
    press = "document.querySelectorAll('#queries-table th button')[3].click()"
    page.evaluate(press)
    times = [float(value) for value in page.evaluate(column) if value]
    assert times == sorted(times)
    assert page.evaluate("document.querySelectorAll('#queries-table th')[3].getAttribute('aria-sort')") == "ascending"
    page.evaluate(press)
    assert [float(value) for value in page.evaluate(column) if value] == times[::-1]


def test_filtering(page: Page, path: Path):
    page.open(path, width=1440)
    visible = "Array.from(document.querySelectorAll('#queries-table tbody tr')).filter((row) => !row.hidden).length"
    total = page.evaluate(visible)
    choose = "(() => {{ const form = document.getElementById('filters'); form.elements.{}.value = '{}'; "
    choose += "form.dispatchEvent(new Event('input', {{bubbles: true}})); }})()"
    page.evaluate(choose.format("arm", "external"))
    assert page.evaluate(visible) == total // 6
    page.evaluate(choose.format("status", "crash"))
    assert page.evaluate(visible) == 1
    assert page.evaluate("document.getElementById('shown').textContent") == f"1 of {total} rows"
    page.evaluate(choose.format("text", "no such text"))
    assert page.evaluate(visible) == 0


def test_moving_a_weight_changes_the_outcome(page: Page, path: Path):
    page.open(path, width=1440)
    said = "document.getElementById('outcome-where').textContent"
    before = page.evaluate(said)
    assert before.startswith("With these weights the evidence")
    page.evaluate(
        "(() => { const form = document.getElementById('weights-where'); "
        "for (const slider of form.querySelectorAll('input')) slider.value = slider.name === 'one-install' ? 10 : 0; "
        "form.dispatchEvent(new Event('input', {bubbles: true})); })()"
    )
    after = page.evaluate(said)
    assert "in datafusion-python" in after.split(".")[0]
    assert after != before
    page.evaluate("document.getElementById('weights-where').querySelectorAll('input').forEach((s) => { s.value = 0; })")
    page.evaluate("document.getElementById('weights-where').dispatchEvent(new Event('input', {bubbles: true}))")
    assert "nothing to rank" in page.evaluate(said)


def test_panel_agrees_with_the_report(page: Page, path: Path):
    """The script's own draws give the report's first places within what 3 000 draws can differ."""
    report = make_report(RUN_SMALL)
    page.open(path, width=1440)
    for axis in report.decision.axes:
        said = page.evaluate(f"document.getElementById('outcome-{axis.axis}').textContent")
        for option in axis.options:
            if option.excluded is None:
                share = int(said.split(f"{option.title}: score")[1].split("first in ")[1].split(" %")[0])
                assert share / 100 == pytest.approx(option.rank1, abs=0.05), option.title
                assert f"{option.title}: score {option.score:.2f}" in said


def test_release_what_if(page: Page, path: Path):
    page.open(path, width=1440)
    page.evaluate(
        "(() => { const form = document.getElementById('lag-form'); form.elements.engine.value = 40; "
        "form.elements.python.value = 20; form.elements.own.value = 5; "
        "form.dispatchEvent(new Event('input', {bubbles: true})); })()"
    )
    said = page.evaluate("document.getElementById('lag-out').textContent")
    assert "inline: distributed after 40 days, users of plain datafusion wait 20 extra" in said
    assert "external and decorator: distributed after 45 days" in said


def test_keyboard(page: Page, path: Path):
    page.open(path, width=1440)
    focused = "document.activeElement.className || document.activeElement.tagName"
    page.key("Tab", 9)
    assert page.evaluate(focused) == "skip"
    reached = set()
    for _ in range(150):
        page.key("Tab", 9)
        reached.add(page.evaluate("document.activeElement.tagName"))
    assert {"A", "BUTTON", "SUMMARY", "INPUT", "SELECT", "DIV"} <= reached, "something cannot be reached by keyboard"
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline != "none"


def test_readable_without_script(page: Page, path: Path):
    page.open(path, width=768, scripts=False)
    assert page.evaluate("document.querySelectorAll('#queries-table tbody tr').length") == 48
    assert page.evaluate("getComputedStyle(document.getElementById('filters')).display") == "none"


def test_print_shows_everything(page: Page, path: Path):
    page.open(path, width=1440)
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.evaluate("document.querySelectorAll('details:not([open])').length") == 0
    page.call("Emulation.setEmulatedMedia", media="print")
    try:
        assert page.evaluate("getComputedStyle(document.querySelector('nav.contents')).display") == "none"
        assert page.evaluate("getComputedStyle(document.querySelector('.scroll.tall')).maxHeight") == "none"
    finally:
        page.call("Emulation.setEmulatedMedia", media="")
    data = page.call("Page.printToPDF")["data"]
    assert len(data) > 50_000
