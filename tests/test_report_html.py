"""The HTML form loads nothing, stays small, keeps its contrast, and cannot be broken by what a run contains."""

from __future__ import annotations

import html.parser
import json
import re

import pytest

from report_helpers import RUN_SMALL
from reports.build import make_report
from reports.html import MAX_BYTES, render_html
from reports.html.page import TEMPLATES, glossary
from reports.model import Report

LOADERS = {"src", "srcset", "poster", "data", "background", "action", "formaction", "manifest"}
"""Attributes that make a browser fetch something; `href` does for `link`, `image` and `use`."""


class Scan(html.parser.HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.tables = 0
        self.headed = 0

    def handle_starttag(self, tag, attrs):
        for name, value in attrs:
            if name in LOADERS or (name in ("href", "xlink:href") and tag in ("link", "image", "use", "script")):
                if not (value or "").startswith(("data:", "#")):
                    self.loads.append(f"{tag} {name}={value}")
            elif name == "href" and tag == "a":
                self.links.append(value or "")
            elif name == "id":
                self.ids.append(value or "")
        self.tables += tag == "table"
        self.headed += tag == "thead"


@pytest.fixture(scope="module")
def report() -> Report:
    return make_report(RUN_SMALL)


@pytest.fixture(scope="module")
def page(report) -> str:
    return render_html(report)


@pytest.fixture(scope="module")
def scan(page) -> Scan:
    found = Scan()
    found.feed(page)
    return found


def test_nothing_is_loaded(page, scan):
    assert scan.loads == []
    assert "@import" not in page
    assert not re.search(r"url\((?!#|['\"]?data:)", page)
    assert "default-src 'none'" in page


def test_size(page):
    assert len(page.encode()) <= MAX_BYTES == 2_000_000


def test_size_of_a_full_run(report):
    """22 queries on 8 arms, each with a long reason, is the most that a default run can hold."""
    rows = (report.queries * 3)[:22]
    long = [
        row.model_copy(
            update={
                "query": f"q{number:02d}",
                "cells": {name: cell.model_copy(update={"reason": "x" * 2000}) for name, cell in row.cells.items()},
            }
        )
        for number, row in enumerate(rows)
    ]
    assert len(render_html(report.model_copy(update={"queries": long})).encode()) <= MAX_BYTES


def test_ids_are_unique_and_links_lead_somewhere(scan):
    assert len(scan.ids) == len(set(scan.ids)), sorted({name for name in scan.ids if scan.ids.count(name) > 1})
    local = [link[1:] for link in scan.links if link.startswith("#")]
    assert local
    assert set(local) <= set(scan.ids)
    assert all(link.startswith("https://github.com/") for link in scan.links if not link.startswith("#"))


def test_every_table_has_a_head(scan):
    assert scan.tables == scan.headed > 10


def test_plots_have_a_text_alternative(page):
    svgs = re.findall(r"<svg\b[^>]*>", page)
    assert len(svgs) >= 5
    assert all('role="img"' in svg and 'aria-label="' in svg for svg in svgs)


def test_plots_carry_no_date_and_no_fixed_colour(page):
    svgs = "".join(re.findall(r"<svg.*?</svg>", page, re.DOTALL))
    assert "<dc:date>" not in svgs
    assert not re.search(r"#0[1-8]0[1-8]0[1-8]", svgs), "a stand-in colour was not replaced"
    left = set(re.findall(r"(?:fill|stroke): (#[0-9a-fA-F]{6})", svgs))
    assert not left, f"colours that would not follow dark mode: {left}"


def luminance(colour: str) -> float:
    parts = [int(colour[index : index + 2], 16) / 255 for index in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
@pytest.mark.parametrize("ink", ["fg", "muted", "accent", "good", "bad", "warn", "neutral"])
@pytest.mark.parametrize("paper", ["bg", "panel", "band"])
def test_contrast_meets_wcag_aa(scheme, ink, paper):
    style = (TEMPLATES / "style.css").read_text(encoding="utf-8")
    blocks = re.findall(r":root \{(.*?)\}", style, re.DOTALL)
    colours = dict(re.findall(r"--(\w+): (#[0-9a-f]{6})", blocks[scheme]))
    assert contrast(colours[ink], colours[paper]) >= 4.5


def test_contrast_formula_on_known_pairs():
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


def test_texts_of_a_run_cannot_become_markup(report):
    evil = "</script><script>alert(1)</script><img src=x onerror=alert(2)>"
    row = report.queries[0]
    cell = row.cells["external"].model_copy(update={"reason": evil, "counts": False, "repro": evil})
    spoiled = row.model_copy(update={"cells": {**row.cells, "external": cell}})
    page = render_html(report.model_copy(update={"queries": [spoiled, *report.queries[1:]]}))
    assert evil not in page
    assert "<img" not in page
    assert page.count("<script") == 2


def test_decision_data_is_json_and_closes_no_script(page):
    data = re.search(r'<script type="application/json" id="decision-data">(.*?)</script>', page, re.DOTALL)
    assert data
    assert "<" not in data.group(1)
    assert {axis["axis"] for axis in json.loads(data.group(1))["axes"]} == {"where", "how"}


def test_synthetic_figures_are_labelled(page):
    assert "SYNTHETIC" in page


def test_no_blank_cells(page):
    blank = re.findall(r"<td[^>]*>\s*</td>", page)
    assert blank == []


def test_glossary_is_sorted_and_explains_in_sentences():
    terms = glossary()
    assert list(terms) == sorted(terms, key=str.lower)
    assert all(meaning.endswith(".") for meaning in terms.values())
