"""Selects the reader and the writer for a URL."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from fsspec.archive import AbstractArchiveFileSystem

from zarrfs.foreign import S3FS_ARGUMENTS, S3FS_CALL
from zarrfs.store.base import ObjectInfo
from zarrfs.store.redact import shown_url
from zarrfs.store.remote.archives.opening import kind_of, open_members, path_inside
from zarrfs.store.remote.archives.reader import ArchiveReader
from zarrfs.store.remote.clouds.buckets import azure_bucket, google_bucket
from zarrfs.store.remote.clouds.cloud_service import CloudService
from zarrfs.store.remote.filesystems import check_no_archive, inner_link, open_filesystem
from zarrfs.store.remote.http_service import HttpService, object_url
from zarrfs.store.remote.icechunk.links import Link, link_of
from zarrfs.store.remote.plain_reader import PlainReader, PlainWriter
from zarrfs.store.remote.ranges.ranged_reader import RangedReader
from zarrfs.store.remote.requests import Reader, RequestConfig, Writer
from zarrfs.store.remote.s3.s3_service import S3Service
from zarrfs.store.remote.s3.s3_writer import S3Writer

# File systems whose pipe_file replaces an object in one step.
_REPLACE_AT_ONCE = frozenset(
    {
        "fsspec.implementations.memory.MemoryFileSystem",
        "gcsfs.core.GCSFileSystem",
        "gcsfs.extended_gcsfs.ExtendedGcsFileSystem",
        "adlfs.spec.AzureBlobFileSystem",
    }
)
# File systems whose objects obstore reads and writes, and the function that makes the bucket.
_CLOUDS = {
    "gcsfs.core.GCSFileSystem": google_bucket,
    "gcsfs.extended_gcsfs.ExtendedGcsFileSystem": google_bucket,
    "adlfs.spec.AzureBlobFileSystem": azure_bucket,
}
_S3 = "s3fs.core.S3FileSystem"
_REFERENCES = "fsspec.implementations.reference.ReferenceFileSystem"
# The loop of such a file system has a thread. `HttpService` starts it when it needs it.
_HTTP = ("http://", "https://")
_ARCHIVE = "the members of an archive cannot be replaced"


@dataclass(frozen=True, slots=True)
class Location:
    """A place that a URL names: its reader, its path there, and how a key is joined to the path.

    writer : the writer, or the reason why nothing can be written.
    url : the place as shown to users, if it is more precise than the URL that was opened.
    immutable : whether no object ever changes.
    """

    reader: Reader
    writer: Writer | str
    root: str
    join: Callable[[str, str], str]
    url: str | None = None
    immutable: bool = False


def locate(url: str, options: Mapping[str, object], config: RequestConfig) -> Location:
    """Open the place that ``url`` names.

    Raises as `open_filesystem`, `ArchiveReader` and `find_snapshot` do.
    """
    if (link := link_of(url)) is not None:
        return _snapshot(link, options, config)
    if kind_of(url) is None:
        if url.startswith(_HTTP) and "::" not in url:
            options = {**options, "asynchronous": True}
        filesystem, root = open_filesystem(url, options, config.redact)
        if isinstance(filesystem, AbstractArchiveFileSystem):
            check_no_archive("libarchive", shown_url(url))
        return _direct(filesystem, root, config)
    root = path_inside(url)
    if (inner := inner_link(url, options)) is None:
        # The options name the container, so zarrfs cannot detect when it changes.
        members = open_members(url, options, config.redact, None)
        return Location(PlainReader(members, config), _ARCHIVE, root, join_path)
    container = locate(*inner, config)
    ranged = container.reader
    place = (ranged, container.root) if isinstance(ranged, RangedReader) else None
    open_archive = partial(open_members, url, options, config.redact, place)

    def describe() -> ObjectInfo:
        return container.reader.info(container.root)

    describe()  # raises if there is no archive; a later failure means that it was deleted
    return Location(ArchiveReader(open_archive, describe, config), _ARCHIVE, root, join_path)


def _snapshot(link: Link, options: Mapping[str, object], config: RequestConfig) -> Location:
    from zarrfs.store.remote.icechunk.repository import find_snapshot  # noqa: PLC0415 - seldom used
    from zarrfs.store.remote.icechunk.service import SnapshotService  # noqa: PLC0415

    found = find_snapshot(link, options, config)
    reader = RangedReader(SnapshotService(found, config), config._replace(immutable=True))
    why = "a snapshot never changes"
    return Location(reader, why, link.path, join_path, url=found.link.shown, immutable=True)


def _direct(filesystem: Any, root: str, config: RequestConfig) -> Location:
    # By name, because the packages of these classes may not be installed.
    kind = f"{type(filesystem).__module__}.{type(filesystem).__name__}"
    if kind == "fsspec.implementations.http.HTTPFileSystem":
        http = RangedReader(HttpService(filesystem, config), config)
        return Location(http, "plain HTTP has no way to write", root, object_url)
    if kind == _S3 and not filesystem.version_aware and S3FS_CALL.there and S3FS_ARGUMENTS.there:
        service = S3Service(filesystem, config)
        s3_writer = S3Writer(service, root, config)
        return Location(RangedReader(service, config), s3_writer, root, join_path)
    reach = _CLOUDS.get(kind)
    bucket = None if reach is None else reach(filesystem, root.partition("/")[0])
    if bucket is not None:
        cloud = CloudService(bucket, filesystem.loop, config)
        return Location(RangedReader(cloud, config), cloud, root, join_path)
    if kind == _REFERENCES:
        from zarrfs.store.remote.references.reader import ReferenceReader  # noqa: PLC0415

        why = "references are made of parts of other objects"
        return Location(ReferenceReader(filesystem, config), why, root, join_path)
    reader = PlainReader(filesystem, config)
    if kind in _REPLACE_AT_ONCE:
        return Location(reader, PlainWriter(filesystem, reader), root, join_path)
    return Location(reader, _why_not(kind), root, join_path)


def _why_not(kind: str) -> str:
    if kind == _S3:
        return "the option version_aware, or this version of s3fs, is for reading"
    if kind.startswith("fsspec.implementations.cached."):
        return "a cache only has copies"
    return f"{kind.rpartition('.')[2]} is not known to replace objects in one step"


def join_path(root: str, key: str) -> str:
    """``key`` below ``root``, in the form that most file systems use."""
    root = root.rstrip("/")
    return f"{root}/{key}" if root else key
