"""Object stores of a cluster on the host's side.

The host lists files and reads schemas itself, from a registry that no extension reaches; its public classes are the
only way in. What they do not offer must be registered on the session by hand.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from datafusion.object_store import AmazonS3, GoogleCloud, Http, MicrosoftAzure

if TYPE_CHECKING:
    from collections.abc import Mapping

    from datafusion import SessionContext

_PREFIXES = ("aws_", "google_", "azure_", "azure_storage_")
_FLAGS = ("allow_http", "imdsv1_fallback", "use_emulator", "use_fabric_endpoint")
_KNOWN: dict[str, tuple[Any, str, tuple[str, ...]]] = {
    "s3": (
        AmazonS3,
        "bucket_name",
        ("region", "access_key_id", "secret_access_key", "session_token", "endpoint", "allow_http", "imdsv1_fallback"),
    ),
    "gs": (GoogleCloud, "bucket_name", ("service_account_path",)),
    "az": (
        MicrosoftAzure,
        "container_name",
        (
            "account",
            "access_key",
            "bearer_token",
            "client_id",
            "client_secret",
            "tenant_id",
            "use_emulator",
            "allow_http",
            "use_fabric_endpoint",
        ),
    ),
}
_ALIASES = {
    "default_region": "region",
    "token": "session_token",
    "endpoint_url": "endpoint",
    "service_account": "service_account_path",
    "account_name": "account",
    "account_key": "access_key",
}


def register_on_host(ctx: SessionContext, stores: Mapping[str, Mapping[str, str]]) -> None:
    """Register stores with a stock session.

    Args:
        ctx: the session.
        stores: options as strings, by root URL.

    Raises:
        ValueError: the stock package has no such store, or not this option of it.
    """
    for url, options in stores.items():
        parts = urlsplit(url)
        if parts.scheme in ("http", "https"):
            ctx.register_object_store(f"{parts.scheme}://", Http(url), parts.netloc)
            continue
        scheme = {"s3a": "s3", "abfs": "az", "abfss": "az", "azure": "az"}.get(parts.scheme, parts.scheme)
        if scheme not in _KNOWN:
            msg = f"object store {url!r}: the stock package has no store for {parts.scheme}://"
            raise ValueError(msg)
        store, name, known = _KNOWN[scheme]
        arguments = {name: parts.netloc, **dict(map(_argument, options.items()))}
        unknown = [key for key in arguments if key not in (*known, name)]
        if unknown:
            msg = (
                f"object store {url!r}: the stock package's {store.__name__} has no option {unknown[0]!r} (it has "
                f"{', '.join(known)}). Leave it out, or register the store on the session with "
                f"register_object_store and on the workers with --init"
            )
            raise ValueError(msg)
        ctx.register_object_store(f"{parts.scheme}://", store(**arguments), parts.netloc)


def _argument(item: tuple[str, str]) -> tuple[str, Any]:
    key, value = item[0].lower(), item[1]
    for prefix in _PREFIXES:
        key = key.removeprefix(prefix)
    key = _ALIASES.get(key, key)
    return key, value.lower() in ("true", "1", "yes") if key in _FLAGS else value
