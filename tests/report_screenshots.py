"""Pictures of a report page, for looking at and for the README.

python -m tests.report_screenshots reports/published/latest.html /tmp/shots            three widths, light and dark
python -m tests.report_screenshots reports/published/latest.html docs/report.png      the first screen
"""

from __future__ import annotations

import base64
import sys
import tempfile
from pathlib import Path

from tests.report_browser import Page, browser, find_chromium

WIDTHS = (360, 768, 1440)
FIRST_SCREEN = (1100, 860)
"""Width and height of the README's picture, in CSS pixels: the verdict and the cards."""


def shoot(page: Page, report: Path, out: Path) -> list[Path]:
    """One file if `out` is a PNG, else one per width and colour scheme into the folder `out`."""
    if out.suffix == ".png":
        page.open(report, width=FIRST_SCREEN[0])
        clip = {"x": 0, "y": 0, "width": FIRST_SCREEN[0], "height": FIRST_SCREEN[1], "scale": 1}
        data = page.call("Page.captureScreenshot", format="png", clip=clip, captureBeyondViewport=True)["data"]
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_bytes(base64.b64decode(data))
        return [out]
    out.mkdir(parents=True, exist_ok=True)
    made = []
    for width in WIDTHS:
        for dark in (False, True):
            page.open(report, width=width, dark=dark)
            made.append(out / f"{width}-{'dark' if dark else 'light'}.png")
            page.screenshot(made[-1])
    return made


def main(report: str, out: str) -> int:
    """Make the pictures and say how large they are."""
    chromium = find_chromium()
    if chromium is None:
        sys.stderr.write("no Chromium on this machine (Debian: apt install chromium)\n")
        return 2
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile, browser(chromium, Path(profile)) as page:
        for path in shoot(page, Path(report), Path(out)):
            print(f"{path} {path.stat().st_size / 1000:.0f} kB")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:3]))
