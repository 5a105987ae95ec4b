"""References to the chunks of files: made on first use and kept for the next mount.

Their file name depends on the path and the generation of the file that they describe, and on the
programs that make them. So the references of a changed file, or of another build, are never used.
If there is no room, the least recently used are removed. Until the references are complete their
file has no name, so a killed process leaves none behind.
"""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
import tempfile
from contextlib import suppress
from functools import cache
from hashlib import blake2b
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import BinaryIO

from zarrfs.errors import StoreError, UsageError, to_install
from zarrfs.isolation.interpreter import command
from zarrfs.store.base import Generation
from zarrfs.store.foreign.kinds import Kind
from zarrfs.store.foreign.translate import MISSING
from zarrfs.store.local.local_errors import store_error

log = logging.getLogger(__name__)

_PROGRAM = "zarrfs.store.foreign.translate"
_LARGEST = 256 << 20
_MOST_KEPT_BYTES = 1 << 30
_MOST_KEPT = 1000
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
        status = os.stat(path)
    except OSError as error:
        raise store_error(path, error) from error
    return (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)


def references(
    path: str,
    shown: str,
    kind: Kind,
    generation: Generation,
    directory: str | None,
    seconds: float,
    fd: int | None,
    *,
    again: bool = False,
) -> BinaryIO:
    """An open JSON file of references to the chunks of the file at ``path``.

    path : absolute.
    shown : its path in messages.
    directory : where references are kept; None: they are not kept.
    seconds : that making them may take.
    fd : of the open file, if ``path`` names that.
    again : whether to make references anew that are kept.

    Raises UsageError if a package is missing, StoreError if no references can be made.
    """
    if directory is not None:
        with suppress(OSError):
            os.makedirs(directory, mode=0o700, exist_ok=True)
            identity = repr((edition(), kind.name, shown, fd is None, generation))
            kept = os.path.join(
                directory, blake2b(os.fsencode(identity), digest_size=16).hexdigest() + ".json"
            )
            if again:
                Path(kept).unlink(missing_ok=True)
            if not os.path.exists(kept):
                with tempfile.TemporaryFile(dir=directory) as made:
                    _make(path, shown, kind, made.fileno(), seconds, fd)
                    _publish(made.fileno(), kept)
                _make_room(directory, kept)
            os.utime(kept)
            return open(kept, "rb")
        log.warning("references to %s cannot be kept in %s", shown, directory)
    try:
        made = tempfile.TemporaryFile()  # noqa: SIM115 - the caller closes it
    except OSError as error:
        raise StoreError(shown, f"its references cannot be made: {error}") from error
    try:
        _make(path, shown, kind, made.fileno(), seconds, fd)
    except BaseException:
        made.close()
        raise
    return made


def _make(path: str, shown: str, kind: Kind, target: int, seconds: float, fd: int | None) -> None:
    """Write the references to the open file ``target``."""
    # The other end of this pipe closes with this process, and then the child ends.
    alive, ours = os.pipe()
    try:
        process = subprocess.Popen(
            command(
                *(_PROGRAM, kind.name, path),
                *(str(target), str(_LARGEST), str(seconds), str(alive)),
            ),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            pass_fds=(target, alive, *(() if fd is None else (fd,))),
        )
        log.info("looking for the chunks in %s", shown)
        try:
            said = process.communicate(timeout=seconds)[1]
        except subprocess.TimeoutExpired:
            raise StoreError(
                shown,
                f"its chunks were not found within {seconds:g} s: raise -o translation_timeout",
            ) from None
        finally:
            process.kill()
            process.communicate()
    except OSError as error:
        raise StoreError(shown, f"no program can be started to find its chunks: {error}") from error
    finally:
        os.close(alive)
        os.close(ours)
    if process.returncode == 0:
        return
    if process.returncode == MISSING:
        raise UsageError(f"{shown} is {kind.shown}, which needs packages, {to_install(kind.extra)}")
    lines = said.strip().splitlines()
    reason = lines[-1][:500] if lines else "the program ended by itself"
    if process.returncode < 0:
        reason = f"the program was ended by signal {-process.returncode}"
    log.debug("%s: %s", shown, said)
    raise StoreError(
        shown, f"is {kind.shown}, but no references to its chunks can be made: {reason}"
    )


def _publish(made: int, name: str) -> None:
    """Give an open file without a name the name ``name``. Raises OSError."""
    with suppress(FileExistsError):  # another process has made the same references
        try:
            # A directory's number has Python pass on that the link is followed.
            os.link(f"/proc/self/fd/{made}", name, src_dir_fd=made, follow_symlinks=True)
            return
        except FileNotFoundError:
            pass  # the file system has no files without a name: this one was removed
        fd, part = tempfile.mkstemp(suffix=".part", dir=os.path.dirname(name))
        try:
            with open(fd, "wb") as copy, open(f"/proc/self/fd/{made}", "rb") as source:
                shutil.copyfileobj(source, copy)
            os.replace(part, name)
        except BaseException:
            os.unlink(part)
            raise


def _make_room(directory: str, newest: str) -> None:
    """Remove the least recently used files until the limits hold, but never ``newest``."""
    found = []
    with os.scandir(directory) as entries:
        for entry in entries:
            with suppress(OSError):
                status = entry.stat()
                found.append((status.st_mtime_ns, status.st_size, entry.path))
    size = 0
    for number, (_, length, path) in enumerate(sorted(found, reverse=True)):
        size += length
        if (number >= _MOST_KEPT or size > _MOST_KEPT_BYTES) and path != newest:
            with suppress(OSError):
                Path(path).unlink()
