"""The workflows that are run or copied name commands, options and arm files that exist."""

from __future__ import annotations

import re
import shlex
import textwrap
from pathlib import Path

import click
import pytest

from harness.arms import load_arm
from harness.cli import cli

ROOT = Path(__file__).parents[1]
COMPARE = ROOT / "reports" / "ci" / "compare-wheel.yml"
WORKFLOWS = [COMPARE, *sorted((ROOT / ".github" / "workflows").glob("*.yml")), ROOT / "tox.ini"]


def commands(text: str) -> list[list[str]]:
    """Calls of `df-strategies` in a script, continuation lines joined, up to what the shell takes."""
    joined = re.sub(r"\\\n\s*", " ", text)
    found = re.findall(r"^\s*(?:commands = )?df-strategies ([^\n|>&#]+)", joined, re.MULTILINE)
    return [shlex.split(line.replace("{posargs}", "").replace("{env_name}", "inline")) for line in found]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_commands_of_a_workflow_can_be_parsed(path: Path):
    for words in commands(path.read_text()):
        command: click.Command = cli
        rest = list(words)
        while isinstance(command, click.Group):
            found = command.get_command(click.Context(command), rest[0])
            assert found is not None, words
            command, rest = found, rest[1:]
        command.make_context(command.name or "", rest, resilient_parsing=False)


def test_there_are_commands_to_parse():
    assert len(commands(COMPARE.read_text())) == 2
    assert commands((ROOT / "tox.ini").read_text())[-1] == ["history", "night"]


def test_the_arm_of_the_workflow_is_an_arm_file(tmp_path: Path):
    (text,) = re.findall(r"<<END\n(.*?)\n\s+END", COMPARE.read_text(), re.DOTALL)
    wheel = tmp_path / "datafusion-55.0.0.whl"
    wheel.touch()
    path = tmp_path / "pull-request.toml"
    path.write_text(re.sub(r"\$\(.*?\)", str(wheel), textwrap.dedent(text)))
    arm = load_arm(path)
    assert (arm.name, arm.kind, arm.distributed) == ("pull-request", "external", True)


def test_workflows_pin_nothing_that_is_not_there():
    assert "tox -e nightly" in (ROOT / ".github" / "workflows" / "nightly.yml").read_text()
    assert "[testenv:nightly]" in (ROOT / "tox.ini").read_text()
