"""References to the chunks of files: made on first use and kept for the next mount.

They are kept as the parts of objects in a disk cache are, by the path and the generation of the
file that they describe, and by the programs that make them. So the references of a changed file, or
of another build, are never used.
"""

from __future__ import annotations

import logging
import os
import tempfile
from contextlib import suppress
from functools import cache
from hashlib import blake2b
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import BinaryIO

from zarrfs.errors import DecodeError, StoreError, UsageError, to_install
from zarrfs.isolation.decoders import IsolatedDecoder
from zarrfs.store.base import Data, Generation, ObjectInfo
from zarrfs.store.foreign.kinds import Kind, exact_state_of
from zarrfs.store.local.local_errors import store_error
from zarrfs.store.ranges import Span
from zarrfs.store.wrappers.cache_files import CacheFiles

log = logging.getLogger(__name__)

_PROGRAM = "zarrfs.store.foreign.translate"
_LARGEST = 256 << 20
# The program limits the memory itself; maps of files do not count there.
_ADDRESSES = 1 << 46
_MOST_KEPT_BYTES = 1 << 30
# The packages with which the programs read the files.
_READERS = ("cfgrib", "eccodes", "h5py", "hdf5plugin", "tifffile")


@cache
def edition() -> str:
    """Identifies the programs that make references: others may make others of the same file."""
    digest = blake2b(digest_size=16)
    for program in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(program.read_bytes())
    for package in _READERS:
        with suppress(PackageNotFoundError):
            digest.update(f"{package} {version(package)}".encode())
    return digest.hexdigest()


def generation_of(path: str) -> Generation:
    """The generation of a file, which differs between its states. Raises StoreError."""
    try:
        return exact_state_of(os.stat(path))
    except OSError as error:
        raise store_error(path, error) from error


def path_for_others(path: str) -> str:
    """``path`` for other processes of this user, also if it is that of an open file."""
    return path.replace("/proc/self/", f"/proc/{os.getpid()}/", 1)


def references(
    path: str,
    shown: str,
    kind: Kind,
    generation: Generation,
    directory: str | None,
    seconds: float,
    *,
    again: bool = False,
) -> BinaryIO:
    """An open JSON file of references to the chunks of the file at ``path``.

    path : absolute.
    shown : its path in messages.
    directory : where references are kept; None: they are not kept.
    seconds : that making them may take.
    again : whether to make references anew that are kept.

    Raises UsageError if a package is missing, StoreError if no references can be made.
    """
    files = None
    if directory is not None:
        try:
            files = CacheFiles(directory, _MOST_KEPT_BYTES)
        except UsageError as error:
            log.warning("references to %s cannot be kept: %s", shown, error)
    # Those of an open file name no path that others have.
    name = repr((edition(), kind.name, shown, path == shown))
    if files is not None and again:
        files.drop(name)
    found = None if files is None else files.read(name, Span(0, 0), generation)
    text: Data = made(path, shown, kind, seconds) if found is None else found.data
    if files is not None and found is None:
        files.keep(name, ObjectInfo(len(text), None, generation), 0, text)
    try:
        file = tempfile.TemporaryFile()  # noqa: SIM115 - the caller closes it
        file.write(text)
        file.flush()
    except OSError as error:
        raise StoreError(shown, f"its references cannot be made: {error}") from error
    return file


def made(path: str, shown: str, kind: Kind, seconds: float) -> bytes:
    """The references as JSON, found in the file. Raises as `references` does."""
    log.info("looking for the chunks in %s", shown)
    # Not shared: it keeps memory, and each file has its time.
    decoder = IsolatedDecoder(_PROGRAM)
    try:
        text = decoder.decode(
            {"kind": kind.name, "path": path_for_others(path)},
            b"",
            size=_LARGEST,
            memory=_ADDRESSES,
            exact=False,
            seconds=seconds,
        )
    except DecodeError as error:
        reason = f"is {kind.shown}, but no references to its chunks can be made: {error}"
        if isinstance(error.__cause__, TimeoutError):
            reason = f"its chunks were not found within {seconds:g} s: raise -o translation_timeout"
        raise StoreError(shown, reason) from error
    finally:
        decoder.close()
    if not text:
        raise UsageError(f"{shown} is {kind.shown}, which needs packages, {to_install(kind.extra)}")
    return text
