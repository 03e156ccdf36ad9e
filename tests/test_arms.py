"""Arm files: the shipped ones, everything that can be wrong with one, and how arms are chosen for a run."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from arm_helpers import aa_file, arm_file
from harness.arms import ARM_FILES, all_arms, load_arm, parse_names, select_arms, shipped_arms
from harness.environments import environment_key, prepare
from harness.errors import EXIT_USAGE, HarnessFault, UserError
from harness.runner.config_diff import config_differences, require_alike

MINIMAL = """
schema = 1
name = "mine"
title = "mine"
kind = "external"
[environment]
source = "interpreter"
python = "{harness_python}"
[driver]
factory = "stock"
"""


def load(folder: Path, text: str) -> None:
    path = folder / "mine.toml"
    path.write_text(text, encoding="utf-8")
    load_arm(path)


def test_the_shipped_arms() -> None:
    arms = shipped_arms()
    assert set(arms) == {"inline", "external", "decorator", "local", "single", "native", "aa"}
    assert {path.stem for path in ARM_FILES.glob("*.toml")} == set(arms), "a file is named after its arm"
    assert [name for name, arm in arms.items() if arm.kind == "strategy"] == ["decorator", "external", "inline"]
    assert not arms["local"].distributed
    assert all(arms[name].distributed for name in ("inline", "external", "decorator", "native"))


def test_shipped_arms_share_their_pins() -> None:
    pins: dict[str, set[str]] = {}
    for arm in shipped_arms().values():
        for requirement in arm.environment.requirements if arm.environment else []:
            name, _, marker = requirement.partition(";")
            pins.setdefault(name.partition("==")[0] + marker, set()).add(name)
    assert pins
    assert {name: found for name, found in pins.items() if len(found) > 1} == {}


def test_every_difference_of_a_shipped_arm_has_a_reason() -> None:
    for arm in shipped_arms().values():
        assert all(len(entry.reason.split()) > 3 for entry in [*arm.differences, *arm.unsupported]), arm.name


def test_the_example_in_the_readme_is_a_valid_arm(tmp_path: Path) -> None:
    text = (ARM_FILES / "README.md").read_text(encoding="utf-8")
    (tmp_path / "pr1611.toml").write_text(text.partition("```toml\n")[2].partition("```")[0], encoding="utf-8")
    assert load_arm(tmp_path / "pr1611.toml").workers is not None


def test_a_minimal_file_is_enough(tmp_path: Path) -> None:
    load(tmp_path, MINIMAL)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("schema = 1", ""), "key `schema` is None, expected 1"),
        (("schema = 1", "schema = 2"), "key `schema` is 2, expected 1"),
        (('name = "mine"', 'name = "My Arm"'), "key `name` is 'My Arm', expected a short lower-case name"),
        (('name = "mine"', ""), "key `name` is missing"),
        (('kind = "external"', 'kind = "other"'), "key `kind` is 'other', expected"),
        (('title = "mine"', 'title = "mine"\ncolour = "red"'), "key `colour` is not known"),
        (
            ('factory = "stock"', 'factory = "no function"'),
            "key `driver.factory` is 'no function', expected `module:function`",
        ),
        (('factory = "stock"', ""), "exactly one of `factory` (Python) and `command`"),
        (('factory = "stock"', 'factory = "stock"\ncommand = ["x"]'), "exactly one of `factory`"),
        (('python = "{harness_python}"', ""), "source `interpreter` needs the key `python`"),
        (('source = "interpreter"', 'source = "registry"'), "source `registry` needs the key `requirements`"),
        (('source = "interpreter"', 'source = "wheel"'), "source `wheel` needs the key `wheel`"),
        (('source = "interpreter"', 'source = "magic"'), "key `environment.source` is 'magic', expected"),
        (
            ('source = "interpreter"', 'source = "interpreter"\nrequirements = ["pyarrow>=20"]'),
            "key `environment.requirements.0` is 'pyarrow>=20', expected an exactly pinned requirement",
        ),
        (
            ('factory = "stock"', 'factory = "stock"\n[workers]\ncommand = ["x"]'),
            "`[workers]` and the capability `distributed` belong together",
        ),
        (
            ('factory = "stock"', 'factory = "stock"\n[[differences]]\nkey = "x"\nreason = "why"'),
            "key `differences.0.reason` is 'why', expected a sentence of at least 10 characters",
        ),
        (
            ('factory = "stock"', 'factory = "stock"\n[[unsupported]]\nwhat = "joins"\nreason = "cannot do joins"'),
            "key `unsupported.0.what` is 'joins', expected",
        ),
        (('title = "mine"', 'title = "mine"\ncopies = ["x"]'), "`copies` is for kind `aa` only"),
        (('kind = "external"', 'kind = "aa"'), "kind `aa` needs `copies`"),
        (('title = "mine"', "title = mine"), "not valid TOML"),
    ],
)
def test_a_wrong_file_names_file_key_and_expectation(tmp_path: Path, change: tuple[str, str], words: str) -> None:
    with pytest.raises(UserError) as caught:
        load(tmp_path, MINIMAL.replace(*change))
    assert f"arm file {tmp_path / 'mine.toml'}" in str(caught.value)
    assert words in str(caught.value)
    assert caught.value.exit_code == EXIT_USAGE


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot be read"):
        load_arm(tmp_path / "none.toml")


def test_paths_are_relative_to_the_file(tmp_path: Path) -> None:
    text = MINIMAL.replace('python = "{harness_python}"', 'python = "env/bin/python"\npath = ["code"]')
    (tmp_path / "a.toml").write_text(text + '[env]\nHOME_OF_ARM = "{arm_dir}"\n', encoding="utf-8")
    arm = load_arm(tmp_path / "a.toml")
    assert arm.environment is not None
    assert arm.environment.python == str(tmp_path / "env/bin/python")
    assert arm.environment.path == [str(tmp_path / "code")]
    assert arm.env == {"HOME_OF_ARM": str(tmp_path)}


def test_a_taken_name_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="the name `local` is taken"):
        all_arms([arm_file(tmp_path, "local")])


@pytest.mark.parametrize(("given", "meant"), [("decorater", "decorator"), ("nativ", "native"), ("in-line", "inline")])
def test_an_unknown_arm_names_near_matches(given: str, meant: str) -> None:
    with pytest.raises(UserError, match=f"unknown arm `{given}`. Did you mean .*`{meant}`"):
        select_arms([given], shipped_arms())


def test_no_arm_and_an_arm_twice_are_refused() -> None:
    with pytest.raises(UserError, match="no arm given"):
        select_arms([], shipped_arms())
    with pytest.raises(UserError, match="`inline` is given 2 times"):
        select_arms(["inline", "inline"], shipped_arms())


@pytest.mark.parametrize(
    ("names", "original"),
    [
        (["inline", "decorator", "aa"], "decorator"),
        (["inline", "local", "aa"], "inline"),
        (["aa", "external"], "external"),
    ],
)
def test_the_aa_arm_copies_a_strategy_of_the_run(names: list[str], original: str) -> None:
    known = shipped_arms()
    aa = next(arm for arm in select_arms(names, known) if arm.name == "aa")
    assert aa.copies == [original]
    assert aa.kind == "aa"
    for part in ("environment", "driver", "workers", "config", "differences"):
        assert getattr(aa, part) == getattr(known[original], part)


def test_the_aa_arm_needs_an_original(tmp_path: Path) -> None:
    known = all_arms([aa_file(tmp_path, "twice", "inline")])
    with pytest.raises(UserError, match="`twice` runs one of inline a second time, but none of them is in this run"):
        select_arms(["decorator", "twice"], known)


def test_names_are_split_at_commas_and_blanks() -> None:
    assert parse_names(" inline, external decorator,,") == ["inline", "external", "decorator"]


def test_declared_differences_pass_and_are_listed(tmp_path: Path) -> None:
    extra = '[[differences]]\nkey = "distributed.*"\nreason = "a test arm without these"\n'
    one, two = load_arm(arm_file(tmp_path, "one")), load_arm(arm_file(tmp_path, "two", extra=extra))
    configs = {"one": {"a": "1", "distributed.x": "2"}, "two": {"a": "1"}}
    listed = require_alike([one, two], configs)
    assert [(d.key, d.values, d.reasons) for d in listed] == [
        ("distributed.x", {"one": "2", "two": None}, {"two": "a test arm without these"})
    ]


def test_undeclared_differences_are_refused(tmp_path: Path) -> None:
    arms = [load_arm(arm_file(tmp_path, name)) for name in ("one", "two", "three")]
    configs = {"one": {"batch": "1"}, "two": {"batch": "1"}, "three": {"batch": "2"}}
    with pytest.raises(Exception, match=r"batch: '1' \(one, two\), '2' \(three\)"):
        require_alike(arms, configs)
    configs["three"]["batch"] = "1"
    assert config_differences(arms, configs) == ([], [])


def test_a_declaration_does_not_excuse_the_others(tmp_path: Path) -> None:
    extra = '[[differences]]\nkey = "batch"\nreason = "only this arm may differ"\n'
    arms = [
        load_arm(arm_file(tmp_path, "one", extra=extra)),
        *(load_arm(arm_file(tmp_path, n)) for n in ("two", "three")),
    ]
    _, undeclared = config_differences(arms, {"one": {"batch": "9"}, "two": {"batch": "1"}, "three": {"batch": "2"}})
    assert [difference.key for difference in undeclared] == ["batch"]


def test_an_existing_interpreter_is_used_as_it_is(tmp_path: Path) -> None:
    environment = prepare(load_arm(arm_file(tmp_path, "one")), {}, cache=tmp_path / "cache")
    assert str(environment.python) == sys.executable
    assert not (tmp_path / "cache").exists()
    with pytest.raises(UserError, match="asks for {binary}"):
        environment.fill(["{binary}"])


def test_an_interpreter_that_is_not_there(tmp_path: Path) -> None:
    text = MINIMAL.replace("{harness_python}", "no/python")
    (tmp_path / "a.toml").write_text(text, encoding="utf-8")
    with pytest.raises(UserError, match="the interpreter .*no/python is not there"):
        prepare(load_arm(tmp_path / "a.toml"), {})


def test_a_wheel_that_is_not_there(tmp_path: Path) -> None:
    text = MINIMAL.replace('source = "interpreter"', 'source = "wheel"').replace(
        'python = "{harness_python}"', 'wheel = "x-1-py3-none-any.whl"'
    )
    (tmp_path / "a.toml").write_text(text, encoding="utf-8")
    with pytest.raises(UserError, match="the wheel .*x-1-py3-none-any.whl is not there"):
        prepare(load_arm(tmp_path / "a.toml"), {})


def test_the_key_follows_what_goes_in() -> None:
    environment = shipped_arms()["decorator"].environment
    assert environment is not None
    key = environment_key(environment, "1" * 64)
    assert key == environment_key(environment, "1" * 64)
    assert key != environment_key(environment, "2" * 64)
    fewer = environment.model_copy(update={"requirements": environment.requirements[:-1]})
    assert key != environment_key(fewer, "1" * 64)


WHEEL_ARM = """
schema = 1
name = "wheelarm"
title = "an arm from a wheel"
kind = "external"
[environment]
source = "wheel"
wheel = "tiny-1.0-py3-none-any.whl"
[driver]
factory = "tiny:make_context"
"""


def write_wheel(path: Path, body: str = "VALUE = 1\n") -> None:
    import zipfile

    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr("tiny.py", body)
        wheel.writestr(
            "tiny-1.0.dist-info/METADATA",
            "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\nRequires-Dist: no-such-package\n",
        )
        wheel.writestr(
            "tiny-1.0.dist-info/WHEEL",
            "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        )
        wheel.writestr("tiny-1.0.dist-info/RECORD", "")


def test_an_environment_is_made_once_and_again_after_an_interruption(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text(WHEEL_ARM, encoding="utf-8")
    write_wheel(tmp_path / "tiny-1.0-py3-none-any.whl")
    arm, cache, said = load_arm(tmp_path / "a.toml"), tmp_path / "cache", []
    first = prepare(arm, {}, cache=cache, say=said.append)
    assert first.python is not None
    assert len(said) == 1
    again = prepare(arm, {}, cache=cache, say=said.append)
    assert again == first
    assert len(said) == 1, "the second time it is only looked up"
    marker = next(cache.glob("*/complete.json"))
    marker.unlink()
    (marker.parent / "half").touch()
    prepare(arm, {}, cache=cache, say=said.append)
    assert len(said) == 2
    assert not (marker.parent / "half").exists(), "what an interrupted installation left is thrown away"
    write_wheel(tmp_path / "tiny-1.0-py3-none-any.whl", "VALUE = 2\n")
    assert prepare(arm, {}, cache=cache, say=said.append).key != first.key


def test_a_broken_wheel_is_one_clear_message(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text(WHEEL_ARM, encoding="utf-8")
    (tmp_path / "tiny-1.0-py3-none-any.whl").write_bytes(b"not a zip")
    with pytest.raises(HarnessFault, match="arm `wheelarm`: could not install tiny-1.0-py3-none-any.whl"):
        prepare(load_arm(tmp_path / "a.toml"), {}, cache=tmp_path / "cache")
    assert not list((tmp_path / "cache").glob("*/complete.json"))


def test_a_cache_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text(WHEEL_ARM, encoding="utf-8")
    write_wheel(tmp_path / "tiny-1.0-py3-none-any.whl")
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="Set DF_STRATEGIES_CACHE"):
        prepare(load_arm(tmp_path / "a.toml"), {}, cache=tmp_path / "file" / "cache")
