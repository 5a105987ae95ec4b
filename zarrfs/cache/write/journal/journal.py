"""Keeps pending changes when a mount ends, and finds the entries of other mounts."""

from __future__ import annotations

import logging
import secrets
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import BinaryIO, NamedTuple, TypeVar

from zarrfs.cache.write.journal.directory import (
    CHUNK,
    CONFLICTS,
    DAMAGED,
    GROWTH,
    JournalDirectory,
    NotOurs,
)
from zarrfs.cache.write.journal.entry_file import (
    ChunkHeader,
    chunk_pieces,
    growth_pieces,
    read_change,
    read_growth,
    read_header,
)
from zarrfs.cache.write.journal.pending import (
    Change,
    Pending,
    PendingChunk,
    PendingGrowth,
)
from zarrfs.counted import counted
from zarrfs.errors import JournalError

log = logging.getLogger(__name__)

Found = TypeVar("Found")

_REPLACED = "holds elements of an array that another program has changed since"


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """One chunk with changes, in a file. See `PendingChunk` and `ChunkHeader`."""

    directory: JournalDirectory
    name: str
    header: ChunkHeader

    def load(self) -> Change:
        """The changes. Raises JournalError if they are damaged or gone."""
        try:
            with self.directory.reading(self.name) as (file, size):
                if read_header(file, size) != self.header:
                    raise JournalError("was replaced by another entry")
                return read_change(file, self.header)
        except OSError as error:
            raise JournalError(f"cannot be read: {error.strerror}") from error


class GrowthEntry(NamedTuple):
    """The growth of an array, in a file."""

    name: str
    growth: PendingGrowth


class Kept(NamedTuple):
    """The result of `Journal.keep`.

    errors : one for each change that could not be kept.
    """

    files: list[Path]
    errors: list[JournalError]


class Journal:
    """The entries of one source. See the invariants of the package.

    directory : where this mount keeps pending changes.

    Not thread-safe. The journal creates nothing on disk until a change has to be kept.
    """

    def __init__(self, directory: str) -> None:
        self.directory = Path(directory)
        self._own = JournalDirectory(self.directory)
        self._mount = secrets.token_hex(8)
        # Names of this mount's entries.
        self._kept: set[str] = set()

    def keep(self, sources: Iterable[Iterable[Pending]]) -> Kept:
        """Keep all pending changes, and remove earlier entries of this mount that are stored now.

        A change that cannot be kept does not affect the others. A change that is returned as kept
        is durable. Blocks. Changes of an array that is encoded anew go to ``conflicts``, and
        ``errors`` says so.
        """
        names: set[str] = set()
        files: list[str] = []
        replaced: dict[str, int] = defaultdict(int)
        errors: list[JournalError] = []
        failing: list[JournalError] = []
        for pending in _each(sources, failing):
            name = self._name(pending)
            names.add(name)
            try:
                self._own.put(name, partial(_pieces, pending, time.time_ns(), time.monotonic()))
            except (OSError, JournalError, MemoryError) as error:
                errors.append(self._not_kept(pending, error))
                continue
            if isinstance(pending, PendingChunk) and pending.replaced:
                self._move(name, CONFLICTS, name, _REPLACED)
                replaced[pending.path] += 1
            else:
                self._kept.add(name)
                files.append(name)
        if files:
            try:
                self._own.sync()
            except (OSError, JournalError) as error:
                reason = _reason(error)
                message = f"{self.directory} cannot be synced: {reason}"
                lost = counted(len(files), "change")
                errors.append(JournalError(f"{message}: a crash may lose {lost}"))
                files = []
        for path, count in replaced.items():
            kept = f"{counted(count, 'changed chunk')} of /{path} kept in {self.directory}"
            reason = "another program has changed the array: its encoding, or to be smaller"
            errors.append(JournalError(f"{kept}/{CONFLICTS}: {reason}"))
        if not failing:
            # Their changes have been stored since they were kept.
            for name in self._kept - names:
                self.remove(name)
            self._kept &= names
        with suppress(OSError, JournalError):
            self._own.clean()
        return Kept([self.directory / name for name in files], errors + failing)

    def _not_kept(self, pending: Pending, error: Exception) -> JournalError:
        what = f"the new length of /{pending.path}"
        if isinstance(pending, PendingChunk):
            what = f"chunk {list(pending.change.index)} of /{pending.path}"
        return JournalError(f"{what} cannot be kept in {self.directory}: {_reason(error)}")

    def _name(self, pending: Pending) -> str:
        what, suffix = pending.path, GROWTH
        if isinstance(pending, PendingChunk):
            what, suffix = f"{pending.path}\0{pending.change.index}", CHUNK
        name = blake2b(what.encode("utf-8", "surrogateescape"), digest_size=16).hexdigest()
        return f"{name}-{self._mount}{suffix}"

    # --- entries of other mounts ---------------------------------------------------

    def replaying(self, patience: float) -> AbstractContextManager[bool]:
        """Keep other mounts from a replay meanwhile.

        False if another mount replays for longer than ``patience`` seconds; that mount stores all
        entries.
        """
        return self._own.locked(patience)

    def entries(self) -> Iterator[JournalEntry]:
        """All entries of chunks. Invalid files go to ``damaged`` or are left alone, and logged."""
        for name in self._names(CHUNK):
            header = self._read(name, read_header)
            if header is not None:
                yield JournalEntry(self._own, name, header)

    def growths(self) -> Iterator[GrowthEntry]:
        """All entries of growths; otherwise as `entries`."""
        for name in self._names(GROWTH):
            growth = self._read(name, read_growth)
            if growth is not None:
                yield GrowthEntry(name, growth)

    def remove(self, name: str) -> None:
        """Remove an entry whose changes are stored. A failure is logged."""
        with _telling(f"{self.directory / name} is stored and cannot be removed"):
            self._own.remove(name)

    def set_aside(self, entry: JournalEntry | GrowthEntry, why: str) -> None:
        """Move an entry that must not be stored to ``conflicts``, for a person to check. Logged."""
        written = entry.header.written_ns if isinstance(entry, JournalEntry) else time.time_ns()
        self._move(entry.name, CONFLICTS, f"{written}-{entry.name}", why)

    def damaged(self, name: str, error: JournalError) -> None:
        """Move an entry that could not be loaded to ``damaged``. Logged."""
        self._move(name, DAMAGED, f"{time.time_ns()}-{name}", str(error))

    def clean(self) -> None:
        """Remove files that killed mounts have left, and empty directories."""
        with _telling(f"the journal {self.directory} cannot be cleaned"):
            self._own.clean()

    def _names(self, suffix: str) -> list[str]:
        names: list[str] = []
        with _telling(f"the journal {self.directory} is left alone"):
            names = self._own.names()
        return [name for name in names if name.endswith(suffix)]

    def _read(self, name: str, read: Callable[[BinaryIO, int], Found]) -> Found | None:
        try:
            with self._own.reading(name) as (file, size):
                return read(file, size)
        except FileNotFoundError:
            return None  # another mount has stored it
        except NotOurs as error:
            log.warning("left alone: %s", error)
        except JournalError as error:
            self.damaged(name, error)
        except OSError as error:
            log.warning("left alone: %s: %s", self.directory / name, error.strerror)
        return None

    def _move(self, name: str, place: str, kept: str, why: str) -> None:
        file = self.directory / name
        try:
            moved = self._own.set_aside(name, place, kept)
        except (OSError, JournalError) as error:
            log.warning("%s %s: it cannot be set aside: %s", file, why, _reason(error))
        else:
            log.warning("%s %s: it is kept as %s", file, why, moved)


def _pieces(pending: Pending, now_ns: int, now: float) -> Iterator[bytes]:
    """The bytes of an entry. ``now_ns`` and ``now`` are the same instant of both clocks."""
    if isinstance(pending, PendingGrowth):
        return growth_pieces(pending)
    return chunk_pieces(pending, now_ns - int(1e9 * (now - pending.since)))


def _each(sources: Iterable[Iterable[Pending]], failing: list[JournalError]) -> Iterator[Pending]:
    """The changes of all sources. If a source fails, ``failing`` gets its error."""
    for source in sources:
        try:
            yield from source
        except Exception as error:
            log.exception("changes cannot be kept")
            failing.append(JournalError(f"changes cannot be kept: {error!r}"))


@contextmanager
def _telling(what: str) -> Iterator[None]:
    try:
        yield
    except (OSError, JournalError) as error:
        log.warning("%s: %s", what, _reason(error))


def _reason(error: Exception) -> str:
    if isinstance(error, OSError):
        return error.strerror or repr(error)
    return str(error) or repr(error)
