"""Where the references of a document may lead.

The user who mounts a document on this machine vouches for it, so it may name any target. A document
from the network may have a hostile author. Its references must not present files of this machine as
chunks.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NoReturn
from urllib.parse import urlsplit

import fsspec
from fsspec.implementations.asyn_wrapper import AsyncFileSystemWrapper
from fsspec.spec import AbstractFileSystem

_HTTP = frozenset({"http", "https"})
LOCAL = frozenset({"file", "local"})
# Protocols that cannot reach this machine. Others are refused, because they may wrap any protocol.
_REMOTE = frozenset(
    (
        *("http", "https", "s3", "s3a", "gs", "gcs", "abfs", "abfss", "adl", "az"),
        *("oss", "oci", "ocilake", "hf", "ftp", "webhdfs"),
    )
)


class Targets(dict[Any, Any]):
    """File systems by protocol, each made when a reference first leads there.

    fsspec would make the file systems for the first reference that it finds. For a document in
    Parquet it reads the whole document for that, and fails if an array has no chunks.

    allowed : protocols that the document may name; None: all.
    options : for each of the file systems.
    place : URL of a document from the network.
    """

    def __init__(
        self, allowed: frozenset[str] | None, options: Mapping[str, Any], place: str
    ) -> None:
        super().__init__()
        self._allowed = allowed
        self._options = options
        self._place = place

    def __missing__(self, protocol: str | None) -> Any:
        name = protocol or "file"
        if self._allowed is not None and name not in self._allowed:
            return self.setdefault(protocol, Refused(name))
        made = fsspec.filesystem(name, skip_instance_cache=True, **self._options)
        if self._allowed is not None and name in _HTTP:
            _keep_elsewhere(made, self._place)
        made = made if made.async_impl else AsyncFileSystemWrapper(made, asynchronous=False)
        return self.setdefault(protocol, made)


def leaves_targets_open(protocols: Sequence[str], options: Mapping[str, object]) -> bool:
    """Whether a URL with these protocols is one of references without a given target protocol."""
    said = _merged(options)
    return protocols[0] == "reference" and not {"fs", "remote_protocol", "target"} & set(said)


class Refused:
    """Replaces a file system that a document must not name."""

    async_impl = True
    asynchronous = False

    def __init__(self, protocol: str, document: str = "from the network") -> None:
        self._protocol = protocol
        self._document = document

    def __getattr__(self, name: str) -> NoReturn:
        raise PermissionError(
            f"a document of references {self._document} must not name {self._protocol}:// places"
        )


def confine(
    filesystem: Any, protocols: Sequence[str], options: Mapping[str, object], url: str
) -> None:
    """Keep the references of a document from the network away from this machine.

    filesystem : made by fsspec from a ``url`` with these ``protocols``, the outermost first.
    options : given by the user; a ``remote_protocol`` or ``fs`` in them is allowed. If they leave
        the targets open, `Targets` finds them.
    """
    said = _merged(options)
    is_local = _is_local(protocols, said)
    found = Targets(None if is_local else _REMOTE, _remote_options(said), _place(url, said))
    if isinstance(given := said.get("fs"), Targets):
        filesystem.fss = given  # by zarrfs itself, for a document that was found
        return
    if leaves_targets_open(protocols, options):
        filesystem.fss = found
        return
    if is_local:
        return
    chosen = said.get("remote_protocol")
    named = {chosen} if isinstance(chosen, str) else set()
    if isinstance(given, Mapping):
        named |= set(given)
    for references in _reference_filesystems(filesystem):
        for protocol, target in references.fss.items():
            actual = _protocol(target)
            if protocol in named or actual in named:
                continue
            if protocol not in _REMOTE and actual not in _REMOTE:
                references.fss[protocol] = Refused(actual)
            elif actual in _HTTP:
                # fsspec may have shared the file system with others.
                references.fss[protocol] = found[actual]


def _reference_filesystems(filesystem: Any) -> Iterator[Any]:
    """The file systems of references in a chain of file systems."""
    while filesystem is not None:
        if _protocol(filesystem) == "reference":
            yield filesystem
        filesystem = getattr(filesystem, "fs", None)


def _merged(options: Mapping[str, object]) -> dict[str, object]:
    """The options of a document of references, whether they stand under its protocol or not."""
    own = options.get("reference")
    return {**options, **(own if isinstance(own, Mapping) else {})}


def _remote_options(options: Mapping[str, object]) -> Mapping[str, Any]:
    given = options.get("remote_options")
    return given if isinstance(given, Mapping) else {}


def _keep_elsewhere(filesystem: Any, place: str) -> None:
    """Keep an HTTP file system from connecting to this machine; ``place`` : of the document."""
    from zarrfs.store.remote.references.elsewhere import elsewhere  # noqa: PLC0415 - needs aiohttp

    parts = urlsplit(place)
    port = parts.port or {"http": 80, "https": 443}.get(parts.scheme)
    named = (parts.hostname, port) if parts.hostname and port else None
    filesystem.get_client = partial(elsewhere, named)


def _place(url: str, options: Mapping[str, object]) -> str:
    """The URL of the document itself, without the links of a chain above it."""
    below = url.partition("::")[2] or options.get("fo")
    return below.rpartition("::")[2] if isinstance(below, str) else ""


def _is_local(protocols: Sequence[str], options: Mapping[str, object]) -> bool:
    """Whether the document lies on this machine, as far as that can be known."""
    place = options.get("fo")
    if isinstance(place, Mapping):
        return True  # the user wrote it
    if "reference" in protocols and (below := protocols[list(protocols).index("reference") + 1 :]):
        return below[-1] in LOCAL
    if not isinstance(place, str):
        return False
    inner = place.rpartition("::")[2]
    protocol = inner.partition("://")[0] if "://" in inner else options.get("target_protocol")
    return protocol is None or protocol in LOCAL


def _protocol(filesystem: Any) -> str:
    # A file system that is not asynchronous is wrapped.
    filesystem = getattr(filesystem, "sync_fs", filesystem)
    protocol = getattr(filesystem, "protocol", "")
    return str(protocol if isinstance(protocol, str) else protocol[0])


class FoundTargets(Targets):
    """Files of this machine that ``open_file`` opens, and no other places.

    open_file : opens the file at an absolute path, for the caller to close. Raises OSError.
    """

    def __init__(self, open_file: Callable[[str], int]) -> None:
        super().__init__(frozenset(), {}, "")
        self._files = AsyncFileSystemWrapper(_Files(open_file), asynchronous=False)

    def __missing__(self, protocol: str | None) -> Any:
        name = protocol or "file"
        made = self._files if name in LOCAL else Refused(name, "that was found in a directory")
        return self.setdefault(protocol, made)


class _Files(AbstractFileSystem):  # type: ignore[misc]  # fsspec has no types
    """Does for fsspec's file system of references what it needs of its targets."""

    protocol = "file"
    cachable = False

    def __init__(self, open_file: Callable[[str], int]) -> None:
        super().__init__()
        self._open_file = open_file

    def info(self, path: str, **_: Any) -> dict[str, Any]:
        fd = self._open_file(_path(path))
        try:
            status = os.fstat(fd)
        finally:
            os.close(fd)
        return {
            "name": path, "type": "file", "size": status.st_size,
            "mtime": status.st_mtime, "ino": status.st_ino,
        }  # fmt: skip

    def cat_file(
        self, path: str, start: int | None = None, end: int | None = None, **_: Any
    ) -> bytes:
        fd = self._open_file(_path(path))
        with open(fd, "rb", buffering=0) as file:
            size = os.fstat(fd).st_size
            first, last, _step = slice(start, end).indices(size)
            file.seek(first)
            return file.read(max(0, last - first))


def _path(url: str) -> str:
    return os.path.abspath(re.sub(r"^(file|local):(//)?", "", url))
