"""datafusion-python's own test suite, run with its contexts made by a strategy, from a checkout that the user supplies.

Nothing of the suite is kept here. `child.py` runs inside an arm's environment and replaces how a `SessionContext` comes
to be; every test is then held against the same test on stock. `differences.toml` holds the reasons of what differs.
"""

from __future__ import annotations

from harness.conformance.upstream.checkout import Checkout, open_checkout
from harness.conformance.upstream.model import SuiteRow, UpstreamFile
from harness.conformance.upstream.session import run_upstream

__all__ = ["Checkout", "SuiteRow", "UpstreamFile", "open_checkout", "run_upstream"]
