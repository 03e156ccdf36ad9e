"""Errors that a user of the command line sees: one clear message each, with the exit code it leads to."""

from __future__ import annotations

EXIT_OK = 0
EXIT_REGRESSION = 1
EXIT_USAGE = 2
EXIT_NOT_COMPARABLE = 3
EXIT_HARNESS_FAULT = 4


class UserError(Exception):
    """Something the user can mend. The message says what was given, what was expected and what to do next."""

    exit_code = EXIT_USAGE


class CheckFailed(UserError):
    """A check or comparison ran to its end and found a regression or a failure."""

    exit_code = EXIT_REGRESSION


class NotComparable(UserError):
    """The things to compare differ in a way that would make any figure meaningless."""

    exit_code = EXIT_NOT_COMPARABLE


class HarnessFault(UserError):
    """The harness itself could not do its work (a broken run directory, a failed build)."""

    exit_code = EXIT_HARNESS_FAULT
