"""Area 22: object stores, on the coordinator and on workers."""

# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

import urllib.request
from typing import Any

from .kit import BY_KEY, Arm, Partial, expected_by_key

BUCKET = "conformance"
OWNER = "key-of-the-owner"


def _put(arm: Arm, bucket: str, access_key: str = OWNER) -> None:
    """Make a bucket that belongs to an access key and copy the usual table into it."""
    endpoint = arm.given["s3"]["endpoint"]
    _call(f"{endpoint}/{bucket}", b"", access_key)
    for path in sorted(arm.parquet().iterdir()):
        _call(f"{endpoint}/{bucket}/t/{path.name}", path.read_bytes(), access_key)


def _call(url: str, body: bytes, access_key: str) -> None:
    headers = {"Authorization": f"AWS4-HMAC-SHA256 Credential={access_key}/20260101/us-east-1/s3/aws4_request"}
    with urllib.request.urlopen(urllib.request.Request(url, data=body, method="PUT", headers=headers), timeout=30):
        pass


def _store(arm: Arm, bucket: str, access_key: str = OWNER) -> Any:
    return arm.df.object_store.AmazonS3(
        bucket_name=bucket, region="us-east-1", access_key_id=access_key, secret_access_key="secret",
        endpoint=arm.given["s3"]["endpoint"], allow_http=True,
    )  # fmt: skip


def _session(arm: Arm, bucket: str, access_key: str = OWNER) -> Any:
    """A session with a store: given as options where workers need it too, registered by hand on a single node."""
    if not arm.distributed:
        ctx = arm.context()
        ctx.register_object_store("s3://", _store(arm, bucket, access_key), bucket)
        return ctx
    options = {
        "region": "us-east-1", "access_key_id": access_key, "secret_access_key": "secret",
        "endpoint": arm.given["s3"]["endpoint"], "allow_http": "true",
    }  # fmt: skip
    return arm.context(object_stores={f"s3://{bucket}": options})


def s3(arm: Arm) -> None:
    _put(arm, BUCKET)
    ctx = _session(arm, BUCKET)
    ctx.register_parquet("t", f"s3://{BUCKET}/t/")
    run = lambda: ctx.sql(BY_KEY.format(table="t")).to_pydict()
    arm.equal(run(), expected_by_key(), "groups of the table in the store")
    arm.on_workers(run)


def s3_registered_by_hand(arm: Arm) -> None:
    """`register_object_store` is what users of the stock package know; a store that is built keeps its credentials."""
    _put(arm, "byhand")
    ctx = arm.context()
    ctx.register_object_store("s3://", _store(arm, "byhand"), "byhand")

    def run() -> object:
        ctx.register_parquet("t", "s3://byhand/t/")
        return ctx.sql(BY_KEY.format(table="t")).to_pydict()

    try:
        got = run()
    except Exception as error:
        arm.check("s3://byhand" in str(error), f"the message does not name the store: {str(error)[:300]}")
        hint = "names" if "object_stores" in str(error) else "does not name"
        raise Partial(
            f"a store registered by hand reaches no worker; the message {hint} the option object_stores"
        ) from error
    arm.equal(got, expected_by_key(), "groups of the table in the store")


def s3_per_context_credentials(arm: Arm) -> None:
    _put(arm, "mine", "first-key")
    good, bad = _session(arm, "mine", "first-key"), _session(arm, "mine", "second-key")
    good.register_parquet("t", "s3://mine/t/")
    arm.equal(good.sql(BY_KEY.format(table="t")).to_pydict(), expected_by_key(), "the context with the right key")

    def use_bad() -> object:
        bad.register_parquet("t", "s3://mine/t/")
        return bad.sql(BY_KEY.format(table="t")).to_pydict()

    arm.figure["wrong key"] = arm.raises(use_bad, "the context with another key")
    arm.equal(
        good.sql(BY_KEY.format(table="t")).to_pydict(), expected_by_key(), "the right context after the wrong one"
    )


def local_prefix(arm: Arm) -> None:
    ctx = arm.context()
    ctx.register_object_store("file://", arm.df.object_store.LocalFileSystem(), None)
    ctx.register_parquet("t", f"file://{arm.parquet()}/")
    run = lambda: ctx.sql(BY_KEY.format(table="t")).to_pydict()
    arm.equal(run(), expected_by_key(), "groups through a registered local store")
    arm.on_workers(run)
