"""Texts from users and services: options, source URLs, references, headers of HTTP."""

from contextlib import suppress
from random import Random
from typing import Any

from tests.fuzz.mutate import mutated_json, mutated_text
from zarrfs.cli.sizes import size_text
from zarrfs.daemon.options.option_parser import parse_options
from zarrfs.daemon.options.options import OPTIONS
from zarrfs.errors import UsageError
from zarrfs.store.redact import Redactor, shown_url
from zarrfs.store.remote.http_service import object_url, parse_content_range
from zarrfs.store.remote.plain_reader import describe
from zarrfs.store.remote.references.document import ReferencesError, filled_in
from zarrfs.store.remote.requests import BadReply

_VALUES = ("", "1", "077", "4G", "0x10", "1e9", "on", "off", "little", "F", "/tmp/x", "-1", "nan",
           "1" * 5000, "٣", "a:b")  # fmt: skip
_RANGES = ("bytes 0-4/10", "bytes */10", "bytes 0-0/*", "bytes 5-1/3", "")
_URLS = ("https://user:pa%20ss@host:80/a.zarr?X-Sig=abcdef&b=1#c", "zip://a::s3://bucket/x.zip",
         "reference::simplecache::https://u:p@h/r.json", "s3://bucket/key", "/a/b::c")  # fmt: skip
_REFERENCES = {
    "version": 1,
    "templates": {"u": "https://host/file", "v": "s3://bucket"},
    "gen": [{"key": "a", "url": "{{u}}", "dimensions": {"i": {"stop": 5}}}],
    "refs": {"zarr.json": "{}", "c/0": ["{{u}}", 0, 10], "c/1": ["{{ v }}/x"], "c/2": "base64:AA"},
}
_DETAILS: dict[str, Any] = {
    "size": 10, "mtime": 1.5e9, "ETag": "x", "LastModified": "2020-01-01T00:00:00+00:00",
    "type": "file", "created": 0.0,
}  # fmt: skip


class Texts:
    """A case gives one changed text to what reads it."""

    def run(self, random: Random) -> str | None:
        return random.choice((_options, _range, _url, _references, _details, _sizes))(random)


def _options(random: Random) -> str | None:
    parts = []
    for _ in range(random.randint(1, 3)):
        option = random.choice(OPTIONS).name
        parts.append(option if random.random() < 0.3 else f"{option}={random.choice(_VALUES)}")
    try:
        parse_options([mutated_text(random, ",".join(parts))])
    except UsageError:
        return "options"
    return None


def _range(random: Random) -> str | None:
    try:
        start, stop, size = parse_content_range(mutated_text(random, random.choice(_RANGES)))
    except BadReply:
        return "range"
    assert all(isinstance(n, int) for n in (start, stop, size))
    return None


def _url(random: Random) -> str | None:
    url = mutated_text(random, random.choice(_URLS))
    shown = Redactor({"secret": "abcdef"}, url)(f"cannot open {url}")
    assert "abcdef" not in shown
    shown_url(url)
    with suppress(ValueError):  # a malformed address
        object_url(url, "c/0")
    return None


def _references(random: Random) -> str | None:
    document = mutated_json(random, _REFERENCES)
    if not isinstance(document, dict):
        return None
    try:
        found = filled_in(document)
    except ReferencesError:
        return "references"
    assert "templates" not in found or not found["templates"]
    return None


def _details(random: Random) -> str | None:
    details = mutated_json(random, _DETAILS)
    if isinstance(details, dict):
        describe(details)
    return None


def _sizes(random: Random) -> str | None:
    assert len(size_text(10 ** random.randint(0, 700))) < 30
    return None
