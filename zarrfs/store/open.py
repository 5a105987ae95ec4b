"""Opens the store that a path or URL names.

A path or a ``file://`` URL is a `LocalStore`. Every other URL goes through fsspec, which is
imported only then.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from itertools import islice
from types import MappingProxyType
from typing import NamedTuple

from zarrfs.errors import (
    NodeNotFound,
    StoreAccessDenied,
    StoreError,
    StoreListingUnsupported,
    UsageError,
)
from zarrfs.store.base import Store
from zarrfs.store.foreign.kinds import (
    REFERENCES,
    ZIP_ENDINGS,
    Kind,
    is_parquet_references,
    kind_of,
)
from zarrfs.store.local.beneath import check_links
from zarrfs.store.local.local import LocalStore
from zarrfs.store.local.local_errors import store_error
from zarrfs.store.local.writing.write_out import sync_file_system
from zarrfs.store.redact import shown_url
from zarrfs.store.remote.icechunk.links import Link, Version, link_of
from zarrfs.store.remote.requests import RequestConfig
from zarrfs.store.wrappers.retry import Retrier, RetryConfig, RetryStore

# Compiled on use, because few mounts need them.
_LOCAL = r"(?i:file|local)://"
_CHAINED = r"(?i:[a-z][a-z0-9+.-]*)::"
_WHOLE_ARCHIVE = r"(zip|tar)(?::///?)?::"
_OF_MACOS = ("__MACOSX/", ".DS_Store")
_MOST_FOLDERS = 16
_SCHEME = r"(?i:[a-z][a-z0-9+.-]*)://"


class StoreConfig(NamedTuple):
    """How a store is opened, and how requests are sent to it.

    storage_options : passed to fsspec unchanged (credentials, endpoints, …); never shown. Default
        none.
    follow_symlinks : also follow links that lead out of a local store. Default False.
    requests : settings of the requests to a remote store.
    retry : deadlines and retries of a remote store.
    references : directory where references to the chunks of files of other formats are kept;
        None: they are made anew each time. Default None.
    translation_timeout : seconds that finding the chunks of such a file may take. Default 60.
    version : of the Icechunk repository that the source names. Default: that in the source.
    durable : whether each put of a local store waits until it is on the disk. Without it, `synced`
        waits for all of them, which takes a fraction of the time for many objects.
    """

    storage_options: Mapping[str, object] = MappingProxyType({})
    follow_symlinks: bool = False
    requests: RequestConfig = RequestConfig()
    retry: RetryConfig = RetryConfig()
    references: str | None = None
    translation_timeout: float = 60.0
    version: Version | None = None
    durable: bool = True

    def __repr__(self) -> str:
        return f"StoreConfig(…, {self.requests!r}, {self.retry!r})"


def open_store(source: str, config: StoreConfig) -> Store:
    """Open the store that ``source`` names: a path, any URL that fsspec knows, or a snapshot.

    A NetCDF, HDF5, TIFF or GRIB file is opened through references to its chunks. A file of
    references is opened as the store that it describes. A ``.zip`` file is opened as the store of
    its members, and so is the URL of an archive without a path in it. If the top level holds only
    one folder, the store is that folder.
    URLs of a scheme that an entry point of ``zarrfs.stores`` names are opened by its function.

    Raises `NodeNotFound` if there is nothing. Raises `UsageError` for a malformed URL, an unknown
    protocol or a protocol whose package is not installed. Raises `StoreError` if a store exists
    and cannot be opened.
    """
    if not source or "\0" in source:
        raise UsageError(f"{source!r} names no store")
    link = link_of(source)
    if link is not None:
        return _open_snapshot(link, config)
    if config.version is not None:
        raise UsageError(
            f"{shown_url(source)} is not an Icechunk repository, so it has no versions"
        )
    path = _local_path(source)
    if path is None:
        archive = re.match(_WHOLE_ARCHIVE, source)
        if archive is not None:
            return _open_archive(archive[1], source[archive.end() :], config)
        return _opener_of(source)(source, config)
    try:
        is_zip = path.lower().endswith(ZIP_ENDINGS) and os.path.isfile(path)
    except OSError as error:
        raise StoreAccessDenied(path, str(error.strerror)) from error
    if is_zip:
        return _open_archive("zip", f"file://{os.path.abspath(path)}", config)
    if os.path.isfile(path) and (kind := kind_of(path)) is not None:
        path = os.path.realpath(path)
        return _open_file(path, path, kind, config)
    if is_parquet_references(path):
        return _open_url(f"reference::file://{os.path.realpath(path)}", config)
    if not os.path.lexists(path):
        raise NodeNotFound(f"{path}: no such file or directory")
    return LocalStore(
        path,
        follow_symlinks=config.follow_symlinks,
        durable=config.durable,
    )


def _opener_of(url: str) -> Callable[[str, StoreConfig], Store]:
    """The function that opens URLs of this scheme: an installed package's, or that of fsspec."""
    from importlib.metadata import entry_points  # noqa: PLC0415 - a local store never needs it

    found = entry_points(group="zarrfs.stores", name=url.partition("://")[0].lower())
    return next((each.load() for each in found), _open_url)


def open_found(
    fd: int, shown: str, config: StoreConfig, open_target: Callable[[str], int]
) -> Store:
    """Open the file ``fd``, which was found in a directory, as the store that it is.

    The user did not name it. So it gets no storage options, no network, and of this machine no
    files but those that ``open_target`` opens for the references in it. ``fd`` stays open.

    shown : its path in messages.

    Raises as `open_store`.
    """
    from zarrfs.store.remote.references.targets import FoundTargets  # noqa: PLC0415

    path = f"/proc/self/fd/{fd}"
    alone = config._replace(storage_options={})
    if shown.lower().endswith(ZIP_ENDINGS):
        return _open_archive("zip", f"file://{path}", alone)
    if (kind := kind_of(path)) is None:
        raise StoreError(shown, "is not of a format that zarrfs serves")
    # The references to the chunks of a file name this file only.
    targets = FoundTargets(open_target if kind is REFERENCES else lambda _: os.dup(fd))
    return _open_file(path, shown, kind, alone._replace(storage_options={"fs": targets}))


def _open_file(path: str, shown: str, kind: Kind, config: StoreConfig) -> Store:
    """Open a file of another format, or of references; as `open_foreign`."""
    from zarrfs.store.foreign.store import open_foreign  # noqa: PLC0415 - seldom needed

    def open_url(url: str) -> Store:
        return _open_url(url, config)

    if kind is REFERENCES:
        return open_url(f"reference::file://{path}")
    seconds = config.translation_timeout
    return open_foreign(path, shown, kind, config.references, seconds, open_url)


def local_directory(source: str) -> str | None:
    """The absolute path of the directory that ``source`` names, or None if it names none."""
    path = _local_path(source) if source and "\0" not in source else None
    return os.path.abspath(path) if path is not None and os.path.isdir(path) else None


def parent_of(source: str) -> tuple[str, str] | None:
    """The directory or prefix that holds ``source``, and the name of the source in it.

    None for files, parts of archives, snapshots, and URLs that carry more than a path.
    """
    if link_of(source) is not None:
        return None
    if (path := local_directory(source)) is not None:
        parent, name = os.path.split(path)
        return (parent, name) if name else None
    found = re.fullmatch(r"([a-z0-9]+://[^/?#:|]+[^?#|]*?)/+([^/?#|]+)/*", source)
    if found is None or "::" in source or found[1].lower().startswith(("file:", "local:")):
        return None
    # A bucket or a host alone is no group.
    whole = re.fullmatch(r"[a-z0-9]+://[^/]+/.+", found[1])
    return (found[1], found[2]) if whole or found[1].startswith("memory:") else None


def synced(store: Store) -> None:
    """Wait until all that was put is durable, also without ``durable``. Raises StoreError."""
    if store.local_path is not None:
        sync_file_system(store.local_path)


def create_store(target: str, config: StoreConfig) -> Store:
    """Open the store that ``target`` names, for writing new objects.

    A missing local directory is made, with its parents. Raises as `open_store`.
    """
    path = _local_path(target) if target and "\0" not in target else None
    if path is not None and not os.path.lexists(path):
        try:
            os.makedirs(path)
        except FileExistsError:
            pass  # another process made it at the same time
        except OSError as error:
            raise store_error(path, error) from error
    return open_store(target, config)


def _local_path(source: str) -> str | None:
    """The path that ``source`` is; None if it is a URL for fsspec."""
    if ":" not in source:
        return source
    if "::" not in source and (match := re.match(_LOCAL, source)):
        return source[match.end() :] or "/"
    if re.match(_SCHEME, source):
        return None
    # A name with "::" in it is a path if such a file exists.
    if re.match(_CHAINED, source) and not os.path.lexists(source):
        return None
    return source


def _open_snapshot(link: Link, config: StoreConfig) -> Store:
    if config.version is not None:
        if link.version is not None:
            raise UsageError(f"{link.shown} already says which version")
        link = link._replace(version=config.version)
    if not config.follow_symlinks and (path := link.local_path) is not None:
        check_links(path)
    return _open_url(link.url, config)


def _open_archive(protocol: str, url: str, config: StoreConfig) -> Store:
    """Open an archive, below the folders that are alone at their level."""
    path = ""
    while True:
        store = _open_url(f"{protocol}://{path}::{url}", config)
        try:
            folder = _only_folder(store)
        except StoreListingUnsupported:
            return store
        except BaseException:
            store.close()
            raise
        if folder is None or path.count("/") >= _MOST_FOLDERS:
            return store
        store.close()
        path = f"{path}/{folder}".lstrip("/")


def _only_folder(store: Store) -> str | None:
    """The folder at the top of an archive; None if there is anything beside it."""
    names = (name for name in store.list_dir("") if name not in _OF_MACOS)
    first = list(islice(names, 2))
    return first[0][:-1] if len(first) == 1 and first[0].endswith("/") else None


def _open_url(url: str, config: StoreConfig) -> Store:
    # This import takes a good part of a second, and a local store never needs it.
    from zarrfs.store.remote.fsspec_store import FsspecStore  # noqa: PLC0415

    retrier = Retrier(config.retry)
    try:
        inner = retrier.call(
            "",
            lambda: FsspecStore(
                url, storage_options=config.storage_options, requests=config.requests
            ),
        )
    except BaseException:
        retrier.close()
        raise
    return RetryStore(inner, retrier)
