"""Opens zip and tar files, whichever file system holds them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from fsspec.compression import compr
from fsspec.utils import infer_compression

from zarrfs import bounds
from zarrfs.errors import UsageError
from zarrfs.store.redact import shown_url
from zarrfs.store.remote.archives.container import RangedFile, SharedFile
from zarrfs.store.remote.archives.damage import lasting
from zarrfs.store.remote.archives.tar_members import TarMembers
from zarrfs.store.remote.archives.zip_members import ZipMembers
from zarrfs.store.remote.filesystems import inner_link, open_filesystem
from zarrfs.store.remote.ranges.ranged_reader import RangedReader

KINDS = ("zip", "tar")
"""Protocols whose members are read here; all other kinds of archive are refused."""


def kind_of(url: str) -> str | None:
    """The one of `KINDS` that the first link of a URL is; None if it is none of them."""
    protocol = url.partition("::")[0].partition("://")[0]
    return protocol if protocol in KINDS and protocol != url else None


def path_inside(url: str) -> str:
    """The path inside the archive that a URL names, without slashes around it."""
    return url.partition("::")[0].partition("://")[2].strip("/")


def open_members(
    url: str,
    options: Mapping[str, object],
    redact: Callable[[str], str],
    container: tuple[RangedReader, str] | None,
) -> ZipMembers | TarMembers:
    """The members of the archive that a URL of one of `KINDS` names.

    container : reader and path of the archive's file, if its store sends ranges.

    Raises `BadReply` for an archive that is damaged or out of bounds, and any exception that the
    file system of its container raises.
    """
    is_zip = kind_of(url) == "zip"
    if container is not None and (is_zip or _compression(container[1], options) is None):
        with lasting():
            ranged = RangedFile(*container)
            return ZipMembers(ranged) if is_zip else TarMembers(ranged, None)
    filesystem, path = _container(url, options, redact)
    file = filesystem.open(path, "rb")
    try:
        with lasting():
            if is_zip:
                return ZipMembers(SharedFile(file))
            if (compression := _compression(path, options)) is None:
                return TarMembers(SharedFile(file), None)
            return TarMembers(SharedFile(compr[compression](file)), bounds.LARGEST_UNPACKED)
    except BaseException:
        file.close()
        raise


def _compression(path: str, options: Mapping[str, object]) -> str | None:
    """How the file of a tar archive is compressed; its ending says so if no option does."""
    given = options.get("compression")
    found: str | None = infer_compression(path if given is None else f".{given}")
    return found


def _container(
    url: str, options: Mapping[str, object], redact: Callable[[str], str]
) -> tuple[Any, str]:
    """File system and path of the archive's file."""
    if (inner := inner_link(url, options)) is not None:
        return open_filesystem(*inner, redact)
    place = options.get("fo")
    if not isinstance(place, str):
        kind = kind_of(url)
        raise UsageError(f"{shown_url(url)}: names no archive; write {kind}://PATH_IN_IT::URL")
    given = options.get("target_options")
    own = dict(given) if isinstance(given, Mapping) else {}
    protocol = options.get("target_protocol")
    if isinstance(protocol, str) and "://" not in place:
        place = f"{protocol}://{place}"
    return open_filesystem(place, own, redact)
