"""Sources that name a snapshot of an Icechunk repository.

Three forms name the same. The first is that of fsspec's chains, the last is that of Neuroglancer
and of the draft ZEP 8::

    icechunk://@tag.v1/group/array::s3://bucket/repository
    icechunk:///data/repository
    s3://bucket/repository|icechunk:@tag.v1/group/array

The part after ``@`` is ``branch.NAME``, ``tag.NAME`` or the id of a snapshot; without it, it is the
tip of the branch ``main``.
"""

from __future__ import annotations

import os
import re
from typing import Literal, NamedTuple
from urllib.parse import quote, unquote

from zarrfs.errors import UsageError
from zarrfs.store.redact import shown_url

_CHAIN = re.compile(r"icechunk(?:://([^:]*))?::(.+)", re.DOTALL)
_ALONE = re.compile(r"icechunk://(.+)", re.DOTALL)
_PIPELINE = re.compile(r"(.+)\|icechunk:([^|]*)(?:\|(?:zarr[23]?:)?)?", re.DOTALL)
_FILE = re.compile(r"(?:file|local)://(.*)", re.DOTALL | re.IGNORECASE)


class Version(NamedTuple):
    """Selects a snapshot by the tip of a branch, by a tag, or by its id."""

    kind: Literal["branch", "tag", "snapshot"]
    name: str

    def __str__(self) -> str:
        name = quote(self.name, safe="")
        return name if self.kind == "snapshot" else f"{self.kind}.{name}"


class Link(NamedTuple):
    """A place in a snapshot.

    repository : URL of the repository, or its local path.
    version : None: the tip of the branch ``main``.
    path : of a group or array in the snapshot; empty for the root.
    """

    repository: str
    version: Version | None
    path: str

    @property
    def url(self) -> str:
        """The link as a source, in the first of the three forms."""
        version = "" if self.version is None else f"@{self.version}"
        path = f"/{quote(self.path)}" if self.path else ""
        return f"icechunk://{version}{path}::{self.repository}"

    @property
    def shown(self) -> str:
        """`url` without credentials."""
        return self._replace(repository=shown_url(self.repository)).url

    @property
    def local_path(self) -> str | None:
        """The absolute path of a local repository; None for any other."""
        found = _FILE.fullmatch(self.repository)
        if found is None and "://" in self.repository:
            return None
        return os.path.abspath(found[1] if found else self.repository)


def link_of(source: str) -> Link | None:
    """The link that ``source`` is; None if it is none. Raises UsageError for a malformed one."""
    if "icechunk:" not in source or os.path.lexists(source):
        return None
    if found := _CHAIN.fullmatch(source):
        return _link(found[2], found[1] or "")
    if found := _PIPELINE.fullmatch(source):
        return _link(found[1], found[2])
    if found := _ALONE.fullmatch(source):
        if found[1].startswith("@") or "://" in found[1]:
            raise UsageError(
                f"{shown_url(source)}: names no repository; write icechunk://@VERSION/PATH::URL"
            )
        return Link(found[1], None, "")
    return None


def _link(repository: str, place: str) -> Link:
    version = None
    if place.startswith("@"):
        name, _, place = place[1:].partition("/")
        version = _version(name)
    return Link(repository, version, unquote(place).strip("/"))


def _version(text: str) -> Version:
    kind, dot, name = text.partition(".")
    name = unquote(name)
    if kind == "branch" and name:
        return Version("branch", name)
    if kind == "tag" and name:
        return Version("tag", name)
    if dot or not text:
        raise UsageError(
            f"{text!r} is not a version: write branch.NAME, tag.NAME or the id of a snapshot"
        )
    return Version("snapshot", text)
