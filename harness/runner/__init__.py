"""Carries out a schedule: sessions of arms, one sample per step, answers judged, everything on disk at once.

Parts, in the order in which a run meets them: `prepare` (environments, data, oracles),
`preflight` (every arm once: same engine, same settings), `conduct` (timed rounds, then the re-run of `recurrence`),
`execute` (one step, one sample), `judge` (one answer), `run` (all of it, new or resumed).
"""

from harness.runner.conduct import RunInterrupted
from harness.runner.run import resume_run, start_run

__all__ = ["RunInterrupted", "resume_run", "start_run"]
