"""The HTML form: one file that loads nothing, made from templates by a pure function of the report."""

from __future__ import annotations

from reports.html.page import MAX_BYTES, render_html

__all__ = ["MAX_BYTES", "render_html"]
