"""Requests of S3, of Google Cloud Storage and of plain HTTP, answered from `Objects`.

All read by ``GET /bucket/key``, so every bucket is a web site as well. Google's protocol is that of
S3 but for conditions, which are on generations, and for deletes by its other protocol.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import formatdate
from urllib.parse import parse_qs, quote, unquote, urlsplit
from xml.sax.saxutils import escape

from tests.remote_server.objects import Objects, Refused, StoredObject

_MOST_KEYS = 1000
_GOOGLE = "/storage/v1/b/"
_GENERATION_MATCH = "x-goog-if-generation-match"


@dataclass(frozen=True)
class Request:
    """``headers`` by lower-case name."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes = b""

    @property
    def path(self) -> tuple[str, str]:
        """Bucket and key."""
        bucket, _, key = unquote(urlsplit(self.target).path).lstrip("/").partition("/")
        return bucket, key

    @property
    def query(self) -> dict[str, str]:
        values = parse_qs(urlsplit(self.target).query, keep_blank_values=True)
        return {name: value[0] for name, value in values.items()}

    @property
    def kind(self) -> str:
        """What is asked for, to be counted by."""
        query = self.query
        if "list-type" in query:
            return f"{self.method} list"
        if "uploadId" in query or "uploads" in query:
            return f"{self.method} upload"
        return f"{self.method} {'object' if self.path[1] else 'bucket'}"


@dataclass(frozen=True)
class Reply:
    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | memoryview = b""


def answer(objects: Objects, request: Request, keys: frozenset[str] | None) -> Reply:
    """The reply to a request.

    keys : access keys that may ask; None: everybody may.
    """
    try:
        _authorize(request, keys)
        return _answer(objects, request)
    except Refused as refused:
        body = (
            f"<?xml version='1.0'?><Error><Code>{refused.code}</Code>"
            f"<Message>{escape(refused.message)}</Message></Error>"
        )
        return Reply(refused.status, {"Content-Type": "application/xml"}, body.encode())


def _authorize(request: Request, keys: frozenset[str] | None) -> None:
    if keys is None:
        return
    found = re.search(r"Credential=([^/]+)/", request.headers.get("authorization", ""))
    if found is None:
        raise Refused(403, "AccessDenied", "Access Denied")
    if found[1] not in keys:
        raise Refused(
            403,
            "InvalidAccessKeyId",
            "The AWS Access Key Id you provided does not exist in our records.",
        )


def _answer(objects: Objects, request: Request) -> Reply:
    if request.target.startswith(_GOOGLE):
        return _google(objects, request)
    bucket, key = request.path
    query = request.query
    match request.method:
        case "GET" if "list-type" in query:
            return _list(objects, bucket, query)
        case "GET" if "location" in query:
            objects.bucket(bucket)
            return _xml("LocationConstraint", "")
        case "HEAD" if not key:
            objects.bucket(bucket)
            return Reply(200, {"x-amz-bucket-region": "us-east-1"})
        case "GET" | "HEAD":
            return _read(objects.get(bucket, key), request)
        case "PUT" if not key:
            objects.buckets.setdefault(bucket, {})
            return Reply(200)
        case "PUT" if "uploadId" in query:
            objects.upload(query["uploadId"]).parts[int(query["partNumber"])] = request.body
            return Reply(200, {"ETag": f'"part-{query["partNumber"]}"'})
        case "PUT":
            objects.check_generation(bucket, key, request.headers.get(_GENERATION_MATCH))
            stored = objects.put(bucket, key, request.body, *_conditions(request))
            return Reply(200, {"ETag": stored.etag, "x-goog-generation": str(stored.generation)})
        case "POST" if "uploads" in query:
            name = objects.begin_upload(bucket, key)
            return _xml("InitiateMultipartUploadResult", f"<UploadId>{name}</UploadId>")
        case "POST" if "uploadId" in query:
            numbers = re.findall(rb"<PartNumber>(\d+)</PartNumber>", request.body)
            stored = objects.complete_upload(
                query["uploadId"], [int(number) for number in numbers], *_conditions(request)
            )
            return _xml("CompleteMultipartUploadResult", f"<ETag>{escape(stored.etag)}</ETag>")
        case "POST" if "delete" in query:
            for name in re.findall(r"<Key>([^<]*)</Key>", request.body.decode()):
                objects.delete(bucket, name)
            return _xml("DeleteResult", "")
        case "DELETE" if "uploadId" in query:
            objects.uploads.pop(query["uploadId"], None)
            return Reply(204)
        case "DELETE":
            objects.delete(bucket, key, request.headers.get("if-match"))
            return Reply(204)
    raise Refused(501, "NotImplemented")


def _google(objects: Objects, request: Request) -> Reply:
    """Of Google's JSON protocol, deleting."""
    found = re.fullmatch(_GOOGLE + r"([^/]+)/o/(.+)", urlsplit(request.target).path)
    if found is None or request.method != "DELETE":
        raise Refused(501, "NotImplemented")
    bucket, key = unquote(found[1]), unquote(found[2])
    objects.get(bucket, key)
    objects.check_generation(bucket, key, request.query.get("ifGenerationMatch"))
    objects.delete(bucket, key)
    return Reply(204)


def _conditions(request: Request) -> tuple[str | None, str | None]:
    return request.headers.get("if-match"), request.headers.get("if-none-match")


def _read(found: StoredObject, request: Request) -> Reply:
    size = len(found.data)
    headers = {
        "ETag": found.etag,
        "x-goog-generation": str(found.generation),
        "Last-Modified": formatdate(found.modified, usegmt=True),
        "Accept-Ranges": "bytes",
        "Content-Type": "application/octet-stream",
    }
    wanted = request.headers.get("if-match")
    if wanted is not None and wanted not in ("*", found.etag):
        raise Refused(412, "PreconditionFailed")
    if request.method == "HEAD":
        return Reply(200, {**headers, "Content-Length": str(size)})
    span = re.fullmatch(r"bytes=(\d*)-(\d*)", request.headers.get("range", ""))
    if span is None:
        return Reply(200, headers, found.data)
    if span[1]:
        start, stop = int(span[1]), min(int(span[2]) + 1 if span[2] else size, size)
    else:
        start, stop = max(0, size - int(span[2])), size
    if start >= size:
        raise Refused(416, "InvalidRange", "The requested range is not satisfiable")
    headers["Content-Range"] = f"bytes {start}-{stop - 1}/{size}"
    return Reply(206, headers, memoryview(found.data)[start:stop])


def _list(objects: Objects, bucket: str, query: Mapping[str, str]) -> Reply:
    prefix, delimiter = query.get("prefix", ""), query.get("delimiter", "")
    after = query.get("continuation-token", query.get("start-after", ""))
    most = min(int(query.get("max-keys", _MOST_KEYS)), _MOST_KEYS)
    entries: list[tuple[str, StoredObject | None]] = []
    for name, stored in sorted(objects.bucket(bucket).items()):
        if not name.startswith(prefix):
            continue
        head, cut, _ = name[len(prefix) :].partition(delimiter) if delimiter else ("", "", "")
        shown = prefix + head + cut if cut else name
        if shown <= after or (entries and entries[-1][0] == shown):
            continue
        if cut and after.startswith(shown):
            continue
        entries.append((shown, None if cut else stored))
        if len(entries) > most:
            break
    more = len(entries) > most
    entries = entries[:most]
    as_told = quote if query.get("encoding-type") == "url" else escape
    parts = [
        f"<Name>{bucket}</Name><Prefix>{as_told(prefix)}</Prefix>",
        f"<KeyCount>{len(entries)}</KeyCount><MaxKeys>{most}</MaxKeys>",
        f"<IsTruncated>{'true' if more else 'false'}</IsTruncated>",
    ]
    if query.get("encoding-type") == "url":
        parts.append("<EncodingType>url</EncodingType>")
    if more:
        parts.append(f"<NextContinuationToken>{escape(entries[-1][0])}</NextContinuationToken>")
    for name, entry in entries:
        if entry is None:
            parts.append(f"<CommonPrefixes><Prefix>{as_told(name)}</Prefix></CommonPrefixes>")
            continue
        parts.append(
            f"<Contents><Key>{as_told(name)}</Key><Size>{len(entry.data)}</Size>"
            f"<LastModified>{_iso(entry.modified)}</LastModified>"
            f"<ETag>{escape(entry.etag)}</ETag><StorageClass>STANDARD</StorageClass></Contents>"
        )
    return _xml("ListBucketResult", "".join(parts))


def _iso(when: float) -> str:
    return datetime.fromtimestamp(when, UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")


def _xml(name: str, inside: str) -> Reply:
    space = "http://s3.amazonaws.com/doc/2006-03-01/"
    body = f'<?xml version="1.0" encoding="UTF-8"?><{name} xmlns="{space}">{inside}</{name}>'
    return Reply(200, {"Content-Type": "application/xml"}, body.encode())
