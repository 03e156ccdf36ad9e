"""Differential tests with generated queries: every answer of an arm against the answer of one node.

A seed decides everything: tables, settings and queries. `tables` and `options` make the surroundings of a batch,
`grammar` and `queries` the SQL, `session` drives the arms, `judge` compares, `shrink` reduces what differs to a minimal
repro and `corpus` keeps it as a data file. This package may import `harness.child`, `harness.cluster` and
`harness.validate`; nothing below `harness.cli` and the reports imports it.
"""

from __future__ import annotations

from harness.fuzz.model import ArmTally, Finding, FuzzResult, FuzzSettings, Verdict

__all__ = ["ArmTally", "Finding", "FuzzResult", "FuzzSettings", "Verdict"]
