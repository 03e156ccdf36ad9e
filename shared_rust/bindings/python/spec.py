"""The description of a cluster: which workers, how to reach them, which options; checked here, read by the engine.

Everything a user can get wrong about a cluster is found in this module, before any query runs, and named in a
`ValueError` or `TypeError` that says what was given and what is expected.
"""

from __future__ import annotations

import difflib
import json
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, TypeAlias, TypedDict
from urllib.parse import urlsplit

from ._checks import check_token, flag, option_string, read_pem, seconds, store_options, string

__all__ = [
    "WORKERS_VARIABLE",
    "ClusterOptions",
    "DistributedOptions",
    "DnsWorkers",
    "WorkerResolver",
    "Workers",
    "build_spec",
    "check_url",
]

WORKERS_VARIABLE = "DATAFUSION_DISTRIBUTED_WORKERS"
"""Environment variable with worker URLs separated by commas, read when no workers are given."""

SCHEMES = ("http", "https")
MAX_PORT = 65535
PREFIX = "distributed."

OptionValue: TypeAlias = str | int | float | bool
WorkerResolver: TypeAlias = Callable[[], Iterable[str]]


@dataclass(frozen=True)
class DnsWorkers:
    """A name in DNS with one address per worker, for example a headless service; looked up again now and then.

    With TLS, certificates are checked against the address unless `tls_domain` names what they hold.

    Args:
        host: name to look up.
        port: port of every worker, 1 to 65535.

    Raises:
        ValueError: host or port is not valid.
    """

    host: str
    port: int

    def __post_init__(self) -> None:
        """Check it now: the first look-up happens in a query."""
        check_url(f"http://{self.host}:{self.port}")


Workers: TypeAlias = str | Iterable[Any] | WorkerResolver | DnsWorkers | None
"""What may name the workers: a URL, URLs, objects with `url` or `urls` (a `Worker`, a `LocalCluster`), a callable that
returns URLs, a `DnsWorkers`, or None for the environment variable. Callables and names are asked again between queries,
when `refresh_seconds` have gone by."""


@dataclass(frozen=True)
class DistributedOptions:
    """Options of the distributed planner; None leaves the engine's default. Each can also be `SET distributed.<name>`.

    Args:
        file_scan_config_bytes_per_partition: bytes that one partition is expected to scan. A scan that needs more
            partitions than one machine has is spread over workers, so lower means more workers. Default 16 MiB.
        cardinality_task_count_factor: factor (1 or more) by which the number of tasks grows or shrinks after an
            operator that changes the number of rows. Default 1.0.
        children_isolator_unions: run each child of a UNION in tasks of its own. Default true.
        collect_metrics: bring the metrics of remote operators back to the coordinator. Default true.
        broadcast_joins: send the build side of a small join to every task. Default true.
        compression: `zstd`, `lz4` or `none`, for data between workers. Default `lz4`.
        shuffle_batch_size: rows per batch between stages; 0 takes `datafusion.execution.batch_size`. Default 0.
        max_tasks_per_stage: upper bound of tasks per stage; 0 is the number of workers. Default 0.
        partial_reduce: aggregate once more before a shuffle. Default false.
        worker_connection_buffer_budget_bytes: bytes that one connection buffers before it pauses. Default 64 MiB.
        dynamic_task_count: choose the number of tasks while the query runs. Default false.
        dynamic_bytes_per_partition: bytes per partition that `dynamic_task_count` aims at. Default 16 MiB.
    """

    file_scan_config_bytes_per_partition: int | None = None
    cardinality_task_count_factor: float | None = None
    children_isolator_unions: bool | None = None
    collect_metrics: bool | None = None
    broadcast_joins: bool | None = None
    compression: str | None = None
    shuffle_batch_size: int | None = None
    max_tasks_per_stage: int | None = None
    partial_reduce: bool | None = None
    worker_connection_buffer_budget_bytes: int | None = None
    dynamic_task_count: bool | None = None
    dynamic_bytes_per_partition: int | None = None

    def to_dict(self) -> dict[str, OptionValue]:
        """Return the options that were set, by their full key."""
        return {PREFIX + name: value for name, value in asdict(self).items() if value is not None}


OPTION_NAMES = tuple(field.name for field in fields(DistributedOptions))


class ClusterOptions(TypedDict, total=False):
    """Keyword options of every entry point that makes a session distributed."""

    options: Mapping[str, OptionValue] | DistributedOptions
    """Options of the distributed planner, by name or by full key (`distributed.compression`)."""
    token: str
    """Bearer token that the workers ask for."""
    tls_ca: str | os.PathLike[str]
    """PEM file with the certificate authority of the workers' certificates; needs https URLs."""
    tls_cert: str | os.PathLike[str]
    """PEM file with this client's certificate, for workers that ask for one."""
    tls_key: str | os.PathLike[str]
    """PEM file with the key of `tls_cert`."""
    tls_domain: str
    """Name to expect in the workers' certificates when it is not the host of their URLs."""
    connect_timeout: float
    """Seconds to wait for a connection to a worker. Default 5."""
    refresh_seconds: float
    """Seconds for which an answer of a callable or of DNS is used. Default 5."""
    allow_python_udfs: bool
    """Send Python functions to the workers by value (they must have been started with the same permission)."""
    strict: bool
    """Raise when a query cannot be distributed, instead of running it on the coordinator."""
    expect_fingerprint: bool
    """Refuse workers that were built from other sources than this package."""
    object_stores: Mapping[str, Mapping[str, OptionValue]]
    """Object stores of this session, by root URL (`s3://bucket`): options of the `object_store` crate, for example
    `endpoint`, `region`, `access_key_id`, `secret_access_key`, `allow_http`. They are opened on the coordinator and on
    every worker, for this session alone. Credentials are sent only to workers on loopback or with TLS."""


_PEM_FILES = ("tls_ca", "tls_cert", "tls_key")
_FLAGS = ("allow_python_udfs", "strict", "expect_fingerprint")
_SECONDS = ("connect_timeout", "refresh_seconds")
_CLIENT = ("token", "tls_domain", "connect_timeout", *_PEM_FILES)
"""What it takes to talk to a worker, without a session."""
_KEYWORDS = ("options", *_CLIENT, "refresh_seconds", *_FLAGS, "object_stores")


def build_spec(workers: Workers, **options: Any) -> tuple[str, WorkerResolver | None]:
    """Return a cluster as the engine reads it: a JSON object, and the callable that names the workers (or None).

    Args:
        workers: see `Workers`.
        **options: see `ClusterOptions`.

    Raises:
        ValueError: no worker, a bad URL, an unknown or contradictory option, a file that is missing or no PEM file.
        TypeError: a value of a wrong type, or an unknown keyword.
    """
    checked = _checked_keywords(options, _KEYWORDS)
    spec: dict[str, Any] = {"options": option_strings(options.get("options")), **checked}
    resolver: WorkerResolver | None = None
    if isinstance(workers, DnsWorkers):
        spec["dns"] = f"{workers.host}:{workers.port}"
    else:
        spec["workers"], resolver = resolve_workers(workers)
    _check_tls(spec)
    return json.dumps(spec), resolver


def client_options(options: Mapping[str, Any]) -> str:
    """Return what it takes to talk to a worker as the engine reads it.

    Args:
        options: `token`, `tls_ca`, `tls_cert`, `tls_key`, `tls_domain`, `connect_timeout` of `ClusterOptions`.

    Raises:
        ValueError: a contradictory option, a file that is missing or no PEM file.
        TypeError: a value of a wrong type, or an unknown keyword.
    """
    checked = _checked_keywords(options, _CLIENT)
    _check_tls(checked)
    return json.dumps(checked)


def _checked_keywords(options: Mapping[str, Any], known: tuple[str, ...]) -> dict[str, Any]:
    unknown = [name for name in options if name not in known]
    if unknown:
        msg = f"unknown option {unknown[0]!r}{_near(unknown[0], known)}; known: {', '.join(known)}"
        raise TypeError(msg)
    checked: dict[str, Any] = {}
    for name, value in options.items():
        if value is None or name == "options":
            continue
        if name in _PEM_FILES:
            checked[name] = read_pem(name, value)
        elif name in _FLAGS:
            checked[name] = flag(name, value)
        elif name in _SECONDS:
            checked[name] = seconds(name, value)
        elif name == "object_stores":
            checked[name] = store_options(value)
        elif name == "token":
            checked[name] = check_token(value)
        else:
            checked[name] = string(name, value)
    return checked


def resolve_workers(workers: Workers) -> tuple[list[str], WorkerResolver | None]:
    """Return fixed URLs, or none and a callable that is asked again between queries.

    Raises:
        ValueError: no worker or a bad URL.
        TypeError: not a way to name workers.
    """
    if workers is None:
        named = os.environ.get(WORKERS_VARIABLE, "")
        urls = [part.strip() for part in named.split(",") if part.strip()]
        if not urls:
            msg = f"no workers given and {WORKERS_VARIABLE} is not set: pass worker URLs such as ['http://host:50051']"
            raise ValueError(msg)
        return check_urls(urls), None
    if hasattr(workers, "urls") or hasattr(workers, "url") or isinstance(workers, str):
        workers = [workers]
    if isinstance(workers, Iterable):
        return check_urls([url for worker in workers for url in _urls_of(worker)]), None
    if callable(workers):
        return [], checked_resolver(workers)
    msg = f"workers must be URLs, worker objects or a callable that returns URLs, got {type(workers).__name__}"
    raise TypeError(msg)


def checked_resolver(resolver: WorkerResolver) -> WorkerResolver:
    """Return the resolver with its answers checked, so that a wrong one names the resolver and not the engine."""

    def resolve() -> list[str]:
        answer = resolver()
        name = getattr(resolver, "__qualname__", type(resolver).__name__)
        if isinstance(answer, (str, bytes)) or not isinstance(answer, Iterable):
            msg = f"the worker resolver {name} must return a list of URLs, got {answer!r}"
            raise TypeError(msg)
        try:
            return check_urls([url for worker in answer for url in _urls_of(worker)])
        except ValueError as error:
            msg = f"the worker resolver {name} failed: {error}"
            raise ValueError(msg) from error

    return resolve


def _urls_of(worker: Any) -> list[str]:
    if isinstance(worker, str):
        return [worker]
    for attribute in ("urls", "url"):
        value = getattr(worker, attribute, None)
        if isinstance(value, str):
            return [value]
        if value is not None:
            return list(value)
    msg = f"a worker must be a URL or have a `url`, got {worker!r}"
    raise TypeError(msg)


def check_urls(urls: list[str]) -> list[str]:
    """Return worker URLs in their normal form.

    Raises:
        ValueError: none given, a bad one, or one given twice.
    """
    if not urls:
        msg = "no workers: a distributed session needs at least one worker URL, for example 'http://127.0.0.1:50051'"
        raise ValueError(msg)
    normal = [check_url(url) for url in urls]
    twice = next((url for url in normal if normal.count(url) > 1), None)
    if twice is not None:
        msg = f"worker URL {twice!r} is given twice"
        raise ValueError(msg)
    return normal


def check_url(url: str) -> str:
    """Return a worker URL as `scheme://host:port`.

    Raises:
        ValueError: anything else than scheme, host and port is wrong, missing or too much.
    """
    expected = "expected http://HOST:PORT or https://HOST:PORT"
    if "://" not in url:
        msg = f"worker URL {url!r} has no scheme: {expected}"
        raise ValueError(msg)
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        msg = f"worker URL {url!r} is not valid ({error}): {expected} with a port from 1 to {MAX_PORT}"
        raise ValueError(msg) from None
    if parts.scheme not in SCHEMES:
        msg = f"worker URL {url!r} has scheme {parts.scheme!r}: {expected}"
        raise ValueError(msg)
    if not host or any(character.isspace() or not character.isprintable() for character in url):
        msg = f"worker URL {url!r} has no valid host: {expected}"
        raise ValueError(msg)
    if not port:
        msg = f"worker URL {url!r} needs a port from 1 to {MAX_PORT}: {expected}"
        raise ValueError(msg)
    beyond = url.partition("://")[2].rstrip("/")
    if any(character in beyond for character in "/?#@"):
        msg = f"worker URL {url!r} holds more than scheme, host and port: {expected}"
        raise ValueError(msg)
    return f"{parts.scheme}://{f'[{host}]' if ':' in host else host}:{port}"


def option_strings(options: Mapping[str, OptionValue] | DistributedOptions | None) -> dict[str, str]:
    """Return planner options by full key, as strings.

    Raises:
        ValueError: an unknown key; the message names near matches.
        TypeError: not a mapping, or a value that is no string, number or bool.
    """
    if options is None:
        return {}
    if isinstance(options, DistributedOptions):
        options = options.to_dict()
    if not isinstance(options, Mapping):
        msg = f"options must be a mapping or DistributedOptions, got {type(options).__name__}"
        raise TypeError(msg)
    result: dict[str, str] = {}
    for key, value in options.items():
        name = str(key).removeprefix(PREFIX)
        if name not in OPTION_NAMES:
            msg = f"unknown option {key!r}{_near(name, OPTION_NAMES)}; known: {', '.join(OPTION_NAMES)}"
            raise ValueError(msg)
        result[PREFIX + name] = option_string(f"option {name!r}", value)
    return result


def _near(name: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(name, list(known), n=2)
    return f", did you mean {' or '.join(repr(match) for match in close)}?" if close else ""


def _check_tls(spec: dict[str, Any]) -> None:
    if ("tls_cert" in spec) != ("tls_key" in spec):
        msg = "tls_cert and tls_key belong together: give both or none"
        raise ValueError(msg)
    if "tls_cert" in spec and "tls_ca" not in spec:
        msg = "tls_cert needs tls_ca, the authority of the workers' certificates"
        raise ValueError(msg)
    plain = next((url for url in spec.get("workers", ()) if url.startswith("http://")), None)
    if plain is not None and "tls_ca" in spec:
        msg = f"TLS files were given, but worker URL {plain!r} is not https"
        raise ValueError(msg)
