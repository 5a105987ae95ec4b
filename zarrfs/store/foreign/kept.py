"""References to the chunks of files: made on first use and kept for the next mount.

Their file name depends on the path and the generation of the file that they describe, so the
references of a changed file are never used. If there is no room, the least recently used are
removed.
"""

from __future__ import annotations

import logging
import os
import subprocess
import tempfile
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path

from zarrfs.errors import StoreError, UsageError
from zarrfs.isolation.interpreter import command
from zarrfs.store.base import Generation
from zarrfs.store.foreign.kinds import Kind
from zarrfs.store.foreign.translate import MISSING

log = logging.getLogger(__name__)

# Changes whenever zarrfs makes other references of the same file.
_EDITION = "1"
_PROGRAM = "zarrfs.store.foreign.translate"
_LARGEST = 256 << 20
_SECONDS = 600
_MOST_KEPT_BYTES = 1 << 30
_MOST_KEPT = 1000


def generation_of(path: str) -> Generation:
    """The generation of a file, which differs between its states. Raises StoreError."""
    try:
        status = os.stat(path)
    except OSError as error:
        raise StoreError(path, str(error.strerror)) from error
    return (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)


def references(path: str, kind: Kind, generation: Generation, directory: str | None) -> str:
    """The path of a JSON file of references to the chunks of the file at ``path``.

    path : absolute.
    directory : where references are kept; None: they are not kept, and the caller removes the file.

    Raises UsageError if a package is missing, StoreError if no references can be made.
    """
    if directory is not None:
        with suppress(OSError):
            os.makedirs(directory, mode=0o700, exist_ok=True)
            told = repr((_EDITION, kind.name, path, generation))
            kept = os.path.join(
                directory, blake2b(os.fsencode(told), digest_size=16).hexdigest() + ".json"
            )
            if os.path.exists(kept):
                os.utime(kept)
                return kept
            made = _make(path, kind, directory)
            os.replace(made, kept)
            _make_room(directory, kept)
            return kept
        log.warning("references to %s cannot be kept in %s", path, directory)
    try:
        return _make(path, kind, None)
    except OSError as error:
        raise StoreError(path, f"its references cannot be made: {error}") from error


def _make(path: str, kind: Kind, directory: str | None) -> str:
    """The path of a new file in ``directory``. Raises OSError if it cannot be made."""
    fd, target = tempfile.mkstemp(prefix="zarrfs-", suffix=".part", dir=directory)
    os.close(fd)
    try:
        done = subprocess.run(
            command(_PROGRAM, kind.name, path, target, str(_LARGEST), str(_SECONDS)),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        os.unlink(target)
        raise StoreError(path, f"its references were not made within {_SECONDS} s") from None
    except BaseException:
        os.unlink(target)
        raise
    if done.returncode == 0:
        return target
    os.unlink(target)
    if done.returncode == MISSING:
        raise UsageError(
            f'{path} is {kind.shown}, which needs packages: pip install "zarrfs[{kind.extra}]"'
        )
    lines = done.stderr.strip().splitlines()
    reason = lines[-1][:500] if lines else "the program ended by itself"
    if done.returncode < 0:
        reason = f"the program was ended by signal {-done.returncode}"
    raise StoreError(
        path, f"is {kind.shown}, but no references to its chunks can be made: {reason}"
    )


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
