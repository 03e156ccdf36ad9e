"""What a user can get wrong about a cluster is found before a query runs, and named."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from build_helpers import REPOSITORY


def load(name: str) -> ModuleType:
    """Load one of the shared files by itself: these need no native library, and the package would."""
    package = ModuleType("df_shared_under_test")
    package.__path__ = [str(REPOSITORY / "shared_rust" / "bindings" / "python")]
    sys.modules.setdefault(package.__name__, package)
    return importlib.import_module(f"{package.__name__}.{name}")


spec = load("spec")
URL = "http://127.0.0.1:50051"


def built(workers: Any = URL, **options: Any) -> dict[str, Any]:
    text, _ = spec.build_spec(workers, **options)
    result: dict[str, Any] = json.loads(text)
    return result


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("127.0.0.1:50051", "no scheme"),
        ("localhost:50051", "no scheme"),
        ("", "no scheme"),
        ("ftp://host:1", "scheme 'ftp'"),
        ("grpc://host:1", "scheme 'grpc'"),
        ("http://host", "port from 1 to 65535"),
        ("http://host:0", "port from 1 to 65535"),
        ("http://host:65536", "65535"),
        ("http://host:-1", "65535"),
        ("http://host:abc", "65535"),
        ("http://:50051", "no valid host"),
        ("http://ho st:1", "no valid host"),
        ("http://host:1/path", "more than scheme, host and port"),
        ("http://host:1?x=1", "more than"),
        ("http://host:1?", "more than"),
        ("http://user:secret@host:1", "more than"),
        ("http://[::1:50051", "not valid"),
    ],
)
def test_bad_url_names_itself_and_what_is_wrong(url: str, problem: str) -> None:
    with pytest.raises(ValueError, match="worker URL") as caught:
        spec.check_url(url)
    assert problem in str(caught.value)
    assert repr(url) in str(caught.value)


HOSTS = st.from_regex(r"[a-z0-9]([a-z0-9-]{0,8}[a-z0-9])?(\.[a-z0-9]{1,5}){0,2}", fullmatch=True)
ADDRESSES = HOSTS | st.ip_addresses(v=4).map(str) | st.ip_addresses(v=6).map(lambda address: f"[{address}]")


@settings(deadline=None)
@given(st.sampled_from(["http", "https"]), ADDRESSES, st.integers(1, 65535), st.sampled_from(["", "/"]))
def test_good_url_is_kept_in_its_normal_form(scheme: str, host: str, port: int, end: str) -> None:
    normal = spec.check_url(f"{scheme}://{host}:{port}{end}")
    assert normal == f"{scheme}://{host}:{port}"
    assert spec.check_url(normal) == normal


@settings(deadline=None)
@given(st.text())
@example("http://[")
@example("http://\u2100:1")
@example("http://h:١")
def test_any_text_is_either_a_url_or_a_value_error(text: str) -> None:
    try:
        normal = spec.check_url(text)
    except ValueError:
        return
    assert spec.check_url(normal) == normal


@pytest.mark.parametrize(
    ("workers", "urls"),
    [
        (URL, [URL]),
        ([URL, "http://h:2"], [URL, "http://h:2"]),
        ((url for url in [URL]), [URL]),
        (SimpleNamespace(url=URL), [URL]),
        (SimpleNamespace(urls=[URL, "http://h:2"]), [URL, "http://h:2"]),
        ([SimpleNamespace(url=URL), "http://h:2"], [URL, "http://h:2"]),
    ],
)
def test_ways_to_name_workers(workers: Any, urls: list[str]) -> None:
    assert built(workers)["workers"] == urls


def test_no_workers_and_doubled_workers() -> None:
    with pytest.raises(ValueError, match="no workers"):
        built([])
    with pytest.raises(ValueError, match="given twice"):
        built([URL, URL + "/"])
    with pytest.raises(TypeError, match="int"):
        built(7)
    with pytest.raises(TypeError, match="must be a URL"):
        built([7])


def test_environment_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(spec.WORKERS_VARIABLE, raising=False)
    with pytest.raises(ValueError, match=spec.WORKERS_VARIABLE):
        built(None)
    monkeypatch.setenv(spec.WORKERS_VARIABLE, f" {URL}, http://h:2 ,")
    assert built(None)["workers"] == [URL, "http://h:2"]


def test_resolver_is_passed_on_and_its_answers_are_checked() -> None:
    answers: list[Any] = [[URL], [], "http://h:1", ["nonsense"], [SimpleNamespace(url=URL)]]
    text, resolver = spec.build_spec(lambda: answers.pop(0))
    assert json.loads(text)["workers"] == []
    assert resolver() == [URL]
    with pytest.raises(ValueError, match="resolver .* failed: no workers"):
        resolver()
    with pytest.raises(TypeError, match="must return a list of URLs"):
        resolver()
    with pytest.raises(ValueError, match="resolver .* failed: .*no scheme"):
        resolver()
    assert resolver() == [URL]


def test_exception_of_a_resolver_is_its_own() -> None:
    def broken() -> list[str]:
        message = "consul is down"
        raise ConnectionError(message)

    _, resolver = spec.build_spec(broken)
    with pytest.raises(ConnectionError, match="consul is down"):
        resolver()


def test_options_become_strings_under_their_full_key() -> None:
    options = {"compression": "none", "distributed.max_tasks_per_stage": 2, "broadcast_joins": False}
    expected = {
        "distributed.compression": "none",
        "distributed.max_tasks_per_stage": "2",
        "distributed.broadcast_joins": "false",
    }
    assert built(options=options)["options"] == expected
    typed = spec.DistributedOptions(compression="none", max_tasks_per_stage=2, broadcast_joins=False)
    assert built(options=typed)["options"] == expected


def test_unknown_names_come_with_near_matches() -> None:
    with pytest.raises(ValueError, match="did you mean 'compression'"):
        built(options={"distributed.compresion": "none"})
    with pytest.raises(TypeError, match="did you mean 'strict'"):
        built(strct=True)


@pytest.mark.parametrize(
    ("options", "kind", "words"),
    [
        ({"options": 3}, TypeError, "mapping"),
        ({"options": {"compression": None}}, TypeError, "NoneType"),
        ({"token": 3}, TypeError, "token must be a string"),
        ({"token": ""}, ValueError, "visible ASCII"),
        ({"token": "two words"}, ValueError, "visible ASCII"),
        ({"token": "line\nbreak"}, ValueError, "visible ASCII"),
        ({"strict": "yes"}, TypeError, "strict must be True or False"),
        ({"allow_python_udfs": 1}, TypeError, "allow_python_udfs must be True or False"),
        ({"tls_ca": "/nowhere/ca.pem"}, ValueError, "tls_ca: cannot read '/nowhere/ca.pem'"),
        ({"tls_ca": REPOSITORY / "Cargo.toml"}, ValueError, "is not a PEM file"),
        ({"tls_ca": sys.executable}, ValueError, "not a text file"),
        ({"connect_timeout": 0}, ValueError, "positive number of seconds"),
        ({"connect_timeout": float("nan")}, ValueError, "positive number of seconds"),
        ({"refresh_seconds": "1"}, TypeError, "number of seconds"),
        ({"tls_domain": 3}, TypeError, "tls_domain must be a string"),
        ({"tls_ca": 3}, TypeError, "path of a PEM file"),
    ],
)
def test_bad_values_are_named(options: dict[str, Any], kind: type[Exception], words: str) -> None:
    with pytest.raises(kind, match=words):
        built(**options)


def test_tls_files_travel_as_text(tmp_path: Path) -> None:
    pem = tmp_path / "x.pem"
    pem.write_text("-----BEGIN X-----\n")
    https = "https://h:1"
    assert built(https, tls_ca=pem, tls_domain="w")["tls_ca"] == pem.read_text()
    assert json.loads(spec.client_options({"tls_ca": str(pem), "token": None})) == {"tls_ca": pem.read_text()}
    with pytest.raises(ValueError, match="belong together"):
        built(https, tls_cert=pem)
    with pytest.raises(ValueError, match="needs tls_ca"):
        built(https, tls_cert=pem, tls_key=pem)
    with pytest.raises(ValueError, match="is not https"):
        built(URL, tls_ca=pem)
    with pytest.raises(TypeError, match="unknown option 'strict'"):
        spec.client_options({"strict": True})


def test_dns_name() -> None:
    assert built(spec.DnsWorkers("workers.example", 50051), refresh_seconds=1) == {
        "dns": "workers.example:50051",
        "options": {},
        "refresh_seconds": 1.0,
    }
    with pytest.raises(ValueError, match="port from 1 to 65535"):
        spec.DnsWorkers("workers.example", 0)


def test_only_what_was_given_is_in_the_spec() -> None:
    assert built() == {"workers": [URL], "options": {}}
    assert built(token=None, strict=None) == {"workers": [URL], "options": {}}
    full = built(token="abc", strict=True, allow_python_udfs=False, expect_fingerprint=True)
    assert full == {
        "workers": [URL],
        "options": {},
        "token": "abc",
        "strict": True,
        "allow_python_udfs": False,
        "expect_fingerprint": True,
    }
