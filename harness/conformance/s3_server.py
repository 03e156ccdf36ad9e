"""A small S3-compatible server on loopback: PUT, GET with ranges, HEAD, ListObjectsV2, one access key per bucket.

`python s3_server.py` prints its port. It keeps objects in memory and looks at the access key of a request, not at its
signature: enough to tell whether the right credentials arrived. `python -I` runs it, so it imports nothing of ours.
"""

from __future__ import annotations

import re
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

MODIFIED = "2026-01-01T00:00:00.000Z"


class Store:
    """Objects by (bucket, key); the access key that made a bucket owns it."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.owners: dict[str, str] = {}
        self.objects: dict[tuple[str, str], bytes] = {}


STORE = Store()


class Handler(BaseHTTPRequestHandler):
    """One request, path-style addressing."""

    protocol_version = "HTTP/1.1"

    def do_PUT(self) -> None:
        """Make a bucket or store an object."""
        bucket, key = self._target()
        body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        with STORE.lock:
            owner = STORE.owners.setdefault(bucket, self._access_key())
        if owner != self._access_key():
            self._error(403, "AccessDenied")
            return
        if key:
            STORE.objects[bucket, key] = body
        self._send(200, b"")

    def do_GET(self) -> None:
        """Read an object or list a bucket."""
        self._read(with_body=True)

    def do_HEAD(self) -> None:
        """Look at an object."""
        self._read(with_body=False)

    def _read(self, *, with_body: bool) -> None:
        bucket, key = self._target()
        if STORE.owners.get(bucket) != self._access_key():
            self._error(403, "AccessDenied")
        elif not key:
            self._list(bucket)
        elif (bucket, key) not in STORE.objects:
            self._error(404, "NoSuchKey")
        else:
            self._object(STORE.objects[bucket, key], with_body=with_body)

    def _object(self, data: bytes, *, with_body: bool) -> None:
        span = re.fullmatch(r"bytes=(\d*)-(\d*)", self.headers.get("Range", ""))
        if span is None:
            self._send(200, data, with_body=with_body)
            return
        first, last = span.groups()
        start = int(first) if first else max(0, len(data) - int(last))
        end = min(int(last), len(data) - 1) if first and last else len(data) - 1
        part = {"Content-Range": f"bytes {start}-{end}/{len(data)}"}
        self._send(206, data[start : end + 1], part, with_body=with_body)

    def _list(self, bucket: str) -> None:
        query = {name: values[0] for name, values in parse_qs(urlsplit(self.path).query).items()}
        prefix, delimiter = query.get("prefix", ""), query.get("delimiter", "")
        entries, common = [], set()
        for (owner, key), data in sorted(STORE.objects.items()):
            if owner != bucket or not key.startswith(prefix):
                continue
            head, found, _ = key[len(prefix) :].partition(delimiter) if delimiter else ("", "", "")
            if found:
                common.add(prefix + head + delimiter)
                continue
            entries.append(
                f"<Contents><Key>{escape(key)}</Key><LastModified>{MODIFIED}</LastModified>"
                f'<ETag>"{len(data)}"</ETag><Size>{len(data)}</Size><StorageClass>STANDARD</StorageClass></Contents>'
            )
        folders = "".join(
            f"<CommonPrefixes><Prefix>{escape(name)}</Prefix></CommonPrefixes>" for name in sorted(common)
        )
        xml = (
            f"<ListBucketResult><Name>{escape(bucket)}</Name><Prefix>{escape(prefix)}</Prefix>"
            f"<KeyCount>{len(entries)}</KeyCount><MaxKeys>1000</MaxKeys><IsTruncated>false</IsTruncated>"
            f"{''.join(entries)}{folders}</ListBucketResult>"
        )
        self._send(200, xml.encode(), {"Content-Type": "application/xml"})

    def _target(self) -> tuple[str, str]:
        bucket, _, key = unquote(urlsplit(self.path).path).lstrip("/").partition("/")
        return bucket, key

    def _access_key(self) -> str:
        found = re.search(r"Credential=([^/]+)/", self.headers.get("Authorization", ""))
        return found.group(1) if found else ""

    def _error(self, code: int, name: str) -> None:
        self._send(code, f"<Error><Code>{name}</Code><Message>{name}</Message></Error>".encode())

    def _send(self, code: int, body: bytes, headers: dict[str, str] | None = None, *, with_body: bool = True) -> None:
        self.send_response(code)
        given = {
            "Content-Length": str(len(body)),
            "ETag": f'"{len(body)}"',
            "Last-Modified": "Thu, 01 Jan 2026 00:00:00 GMT",
        }
        for name, value in {**given, **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        if with_body and self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name of the base class
        """Requests go to the log of the run."""
        sys.stderr.write(f"{self._access_key() or '-'} {format % args}\n")


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    print(server.server_port, flush=True)
    server.serve_forever()
