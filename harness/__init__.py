"""Measure and check: arms, clusters, schedule, runner, validation, statistics, provenance and the command line.

Imports run one way: `model` <- `stats`, `validate` <- `runner` <- `reports` <- `cli`.
What runs inside an arm's environment (`harness/child/arm_child.py`) imports nothing of this package: the timed process
holds the arm and the standard library only.
"""
