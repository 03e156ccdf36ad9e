"""Old run directories stay readable: a run that version 1 really wrote, read, compared and reported by this version."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import jsonschema
import pytest

from harness.cli import main
from harness.errors import EXIT_OK, HarnessFault
from harness.migrations import MANIFESTS, SAMPLES
from harness.model import SCHEMA_VERSION, Status
from harness.run_schema import PARTS, json_schema, schema_file
from harness.rundir import MANIFEST, RunDirectory
from harness.rundir import SAMPLES as SAMPLES_FILE

RUN_V1 = Path(__file__).parent / "fixtures" / "run_v1"
"""Written by the last version of the harness whose schema was 1; only paths of its machine were replaced."""


def test_every_older_version_has_a_way_to_this_one() -> None:
    assert sorted(MANIFESTS) == sorted(SAMPLES) == list(range(1, SCHEMA_VERSION))


def test_a_stored_run_of_version_1_is_read() -> None:
    on_disk = json.loads((RUN_V1 / MANIFEST).read_text(encoding="utf-8"))
    assert on_disk["schema_version"] == 1
    assert "cold" not in on_disk["settings"]
    run = RunDirectory.open(RUN_V1)
    manifest, samples = run.manifest(), run.samples()
    assert manifest.schema_version == SCHEMA_VERSION
    assert (manifest.settings.cold, manifest.settings.streams) == (False, 0)
    assert len(samples) == 18
    for sample, line in zip(samples, (RUN_V1 / SAMPLES_FILE).read_text(encoding="utf-8").splitlines(), strict=True):
        old = json.loads(line)
        assert "processes" not in old
        new = json.loads(sample.model_dump_json())
        assert {key: new[key] for key in old} == old, "what it recorded is unchanged"
        added = {key: new[key] for key in new.keys() - old.keys()}
        assert added == {"batches": None, "cache": "hot", "residency": None, "processes": []}, "nothing is made up"
        assert sample.status is Status.OK


def test_a_run_of_version_1_can_be_compared(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", str(RUN_V1), "--base", "toy", "--new", "single"]) == EXIT_OK
    assert "2 finished rounds" in capsys.readouterr().out


def test_a_run_of_version_1_can_be_reported(tmp_path: Path) -> None:
    from reports.build import make_report

    report = make_report(RUN_V1)
    assert [arm.name for arm in report.arms] == ["toy", "single", "twice"]
    assert all(cell.counts for row in report.queries for cell in row.cells.values())


def test_a_manifest_that_goes_on_is_written_in_the_present_form(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path / "run")
    shutil.copytree(RUN_V1, run.path)
    data = json.loads((run.path / MANIFEST).read_text(encoding="utf-8"))
    (run.path / MANIFEST).write_text(json.dumps({**data, "status": "interrupted"}), encoding="utf-8")
    before = run.samples()
    run.write_manifest(run.manifest())
    assert json.loads((run.path / MANIFEST).read_text(encoding="utf-8"))["schema_version"] == SCHEMA_VERSION
    assert run.samples() == before


@pytest.mark.parametrize("line", ["[]", "null", "{", '{"round": 0}'])
def test_a_damaged_line_of_an_old_run_is_one_message(tmp_path: Path, line: str) -> None:
    run = RunDirectory(tmp_path / "run")
    shutil.copytree(RUN_V1, run.path)
    path = run.path / SAMPLES_FILE
    path.write_text(line + "\n" + path.read_text(encoding="utf-8"), encoding="utf-8")
    with pytest.raises(HarnessFault, match="line 1 is damaged"):
        run.samples()


@pytest.mark.parametrize("part", PARTS)
def test_the_published_schema_is_that_of_the_models(part: str) -> None:
    assert schema_file(part).read_text(encoding="utf-8") == json_schema(part), "run: python -m harness.run_schema"


@pytest.mark.parametrize("version", range(1, SCHEMA_VERSION + 1))
def test_runs_of_every_version_keep_to_its_schema(version: int) -> None:
    run = RUN_V1 if version == 1 else RUN_V1.with_name(f"run_v{version}")
    documents = {
        "manifest": [json.loads((run / MANIFEST).read_text(encoding="utf-8"))],
        "schedule": [json.loads((run / "schedule.json").read_text(encoding="utf-8"))],
        "sample": [json.loads(line) for line in (run / SAMPLES_FILE).read_text(encoding="utf-8").splitlines()],
    }
    for part, found in documents.items():
        schema = json.loads(schema_file(part, version).read_text(encoding="utf-8"))
        for document in found:
            jsonschema.validate(document, schema)
        spoilt = {key: value for key, value in found[0].items() if key not in schema["required"][:1]}
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(spoilt, schema)
