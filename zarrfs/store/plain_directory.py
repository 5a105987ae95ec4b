"""A local directory in which some files are stores.

A file that is a store (NetCDF, HDF5, TIFF, GRIB, a zip with Zarr in it, references) appears as a
directory, and its keys go to that store. The store is opened on the first access to one of its
keys, and stays open.
"""

from __future__ import annotations

import functools
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from threading import Lock
from typing import Literal, NamedTuple, Protocol, TypeVar

from zarrfs.errors import StoreAccessDenied, StoreError, ZarrfsError
from zarrfs.locks import KeyedLocks
from zarrfs.store.base import Blob, ByteRange, Store
from zarrfs.store.foreign.kinds import CHANGED, ZIP_ENDINGS, kind_of, state_of
from zarrfs.store.local.beneath import others_may_read
from zarrfs.store.local.local import LocalStore
from zarrfs.store.wrappers.wrapper import StoreWrapper

_T = TypeVar("_T")

_HEAD = 1 << 12
_EXTENSIONS = (
    *(".nc", ".nc3", ".nc4", ".cdf", ".h5", ".hdf5", ".hdf", ".he5", ".tif", ".tiff"),
    *(".grib", ".grib2", ".grb", ".grb2", ".json"),
)
_IN_ZIP = ("zarr.json", ".zarray", ".zgroup")
# Remembered results of `_is_store`; a file that was replaced adds one more.
_MOST_LOOKS = 4096


class OpenFound(Protocol):
    """Opens a store; see `zarrfs.store.open.open_found`."""

    def __call__(self, fd: int, shown: str, *, open_target: Callable[[str], int]) -> Store: ...


class _Opened(NamedTuple):
    """A store, the file that it is, and the state of the file."""

    store: Store
    fd: int
    state: tuple[int, ...]


class Entry(NamedTuple):
    """An entry of a plain directory.

    form : a directory, a file, or a file that is a store.
    mode : permissions: the mount's owner has those that it has on the file, others keep theirs.
    size, mtime_ns : in bytes, and in nanoseconds since the epoch.
    """

    form: Literal["directory", "file", "store"]
    mode: int
    size: int
    mtime_ns: int


class PlainDirectory(StoreWrapper):
    """The objects of a local store, and of the stores that are files in it.

    open_found : opens the store in an open file; see `zarrfs.store.open.open_found`.
    others : whether other users read through the mount, and so with the rights of this process;
        see also `LocalStore.show_to_others`.

    Shared state, under ``_lock``: ``_opened``, ``_failed`` and ``_looked``. One thread at a
    time opens a file, and the threads that open other files do not wait for it.
    """

    def __init__(self, inner: LocalStore, open_found: OpenFound, *, others: bool = False) -> None:
        super().__init__(inner)
        self._local = inner
        self._open_found = open_found
        self._others = others
        self._lock = Lock()
        # Both by path.
        self._opening = KeyedLocks()
        self._opened: dict[str, _Opened] = {}
        # By path, the files that could not be opened: their state and the reason.
        self._failed: dict[str, tuple[Entry, str]] = {}
        # By path and state of a file, whether the file is a store.
        self._looked: dict[tuple[str, int, int, int], bool] = {}

    @property
    def read_only(self) -> str | None:
        return "a directory of data of any kind is for reading only"

    def entry(self, key: str) -> Entry | None:
        """The entry at ``key``, through links; None if missing, or a FIFO, socket or device.

        Raises StoreError, also for links that lead out of the directory.
        """
        found = self._local.status(key)
        return None if found is None else self._entry(key, *found)

    @property
    def files(self) -> Store:
        """The files that are no stores, of which the kernel knows the modes."""
        return _Files(self._local)

    def left_out(self, key: str) -> str | None:
        """Why a directory is shown as its files, though it holds arrays; None: it holds none."""
        document = f"{key}/.zmetadata" if key else ".zmetadata"
        try:
            if (info := self._local.info(document)) is None:
                return None
            # The member may stand at either end.
            size = min(info.size, _HEAD)
            ends = [ByteRange(0, size), ByteRange(info.size - size, size)]
            found = self._local.get_ranges(document, ends)
        except StoreError:
            return None
        if not any(b'"record_size"' in bytes(part.data) for part in found or ()):
            return None
        return "references in Parquet are served if their directory is the source of the mount"

    def enter(self, key: str) -> None:
        """Open the file at ``key`` as a store. Raises StoreError if that fails."""
        self._store_of(key)

    def get_many(self, keys: Sequence[str], *, limit: int) -> Iterator[Blob | StoreError | None]:
        if keys and self._store_of(keys[0]) is None and not self._may_be_inside(keys):
            return self._inner.get_many(keys, limit=limit)
        return super().get_many(keys, limit=limit)

    def may_exist(self, keys: Sequence[str]) -> Sequence[str]:
        """See `Store.may_exist`; known of directories only."""
        if keys and self._store_of(keys[0]) is None and not self._may_be_inside(keys):
            return self._inner.may_exist(keys)
        return keys

    def list_dir(self, prefix: str) -> Iterator[str]:
        found = self._store_of(prefix) if prefix else None
        if found is not None:
            yield from found[0].list_dir(found[1])
            return
        for name in self._inner.list_dir(prefix):
            if name.endswith("/") or not _may_be_store(name):
                yield name
                continue
            try:
                entry = self.entry(f"{prefix}/{name}" if prefix else name)
            except StoreError:
                entry = None  # a look-up of this name returns the error
            yield f"{name}/" if entry is not None and entry.form == "store" else name

    def close(self) -> None:
        with self._lock:
            opened, self._opened = list(self._opened.values()), {}
        for each in opened:
            each.store.close()
            os.close(each.fd)
        super().close()

    def _read(self, key: str, ask: Callable[[Store, str], _T | None]) -> _T | None:
        found = self._store_of(key)
        if found is None:
            return ask(self._inner, key)
        store, inside = found
        # The store's own root is no object.
        return ask(store, inside or ".zarrfs-root")

    def _may_be_inside(self, keys: Sequence[str]) -> bool:
        return any(_may_be_store(part) for key in keys[:1] for part in key.split("/")[:-1])

    def _store_of(self, key: str) -> tuple[Store, str] | None:
        """The store of the file that ``key`` lies in, and the key inside; None if there is none."""
        parts = key.split("/")
        for count, part in enumerate(parts, 1):
            if not _may_be_store(part):
                continue
            path = "/".join(parts[:count])
            with self._lock:
                opened = self._opened.get(path)
            if opened is None:
                entry = self.entry(path)
                if entry is None or entry.form != "store":
                    continue
                store = self._open(path, entry)
            else:
                self._check(path, opened)
                store = opened.store
            return store, "/".join(parts[count:])
        return None

    def _check(self, path: str, opened: _Opened) -> None:
        """Raises StoreError if the file is another one by now, or must not be read any more."""
        found = self._local.status(path)
        if found is None or state_of(found[0]) != opened.state:
            raise StoreError(path, CHANGED)
        if not found[1] & 0o400:
            raise StoreAccessDenied(path, "Permission denied")

    def _open(self, path: str, entry: Entry) -> Store:
        with self._opening.held(path):
            with self._lock:
                opened = self._opened.get(path)
                failed = self._failed.get(path)
            if opened is not None:
                return opened.store
            # Not again while the file is unchanged: some files take minutes to fail.
            if failed is not None and failed[0] == entry:
                raise StoreError(path, failed[1])
            if (fd := self._local.open_file(path)) is None:
                raise StoreError(path, "does not exist any more")
            try:
                status = os.fstat(fd)
                store = self._open_found(
                    fd,
                    os.path.join(self._root, path),
                    open_target=functools.partial(self._open_target, status.st_uid),
                )
            except BaseException as error:
                os.close(fd)
                if not isinstance(error, ZarrfsError):
                    raise
                reason = error.reason if isinstance(error, StoreError) else str(error)
                with self._lock:
                    self._failed[path] = entry, reason
                raise StoreError(path, reason) from error
            with self._lock:
                self._failed.pop(path, None)
                self._opened[path] = _Opened(store, fd, state_of(status))
            return store

    def _open_target(self, owner: int, path: str) -> int:
        """Opens what a document of ``owner`` names. Raises OSError and StoreError."""
        path = os.path.normpath(path)
        for root in (self._root, os.path.realpath(self._root)):
            if path.startswith(root.rstrip("/") + "/"):
                break
        else:
            raise PermissionError(f"refers to {path}, outside of the directory that is mounted")
        fd = self._local.open_file(path[len(root.rstrip("/")) + 1 :])
        if fd is None:
            raise FileNotFoundError(path)
        try:
            at = os.fsencode(os.path.realpath(self._root)).rstrip(b"/")
            if self._others and not others_may_read(fd, at, owner):
                raise PermissionError(f"refers to {path}, which not all of its readers may read")
        except BaseException:
            os.close(fd)
            raise
        return fd

    @property
    def _root(self) -> str:
        root = self._local.local_path
        assert root is not None
        return root

    def _entry(self, key: str, status: os.stat_result, mode: int) -> Entry | None:
        if stat.S_ISDIR(status.st_mode):
            return Entry("directory", mode, 0, status.st_mtime_ns)
        if not stat.S_ISREG(status.st_mode):
            return None
        if self._is_store(key, status):
            # It is shown as a directory: users who may read the file may enter it.
            return Entry("store", mode | mode >> 2 & 0o111, status.st_size, status.st_mtime_ns)
        return Entry("file", mode, status.st_size, status.st_mtime_ns)

    def _is_store(self, key: str, status: os.stat_result) -> bool:
        if not _may_be_store(key):
            return False
        state = (key, status.st_ino, status.st_size, status.st_mtime_ns)
        with self._lock:
            if (known := self._looked.get(state)) is not None:
                return known
        try:
            if (fd := self._local.open_file(key)) is None:
                return False
        except StoreError:
            return False  # this process can read it neither as a file nor as a store
        path = f"/proc/self/fd/{fd}"
        try:
            found = (
                _has_zarr(path) if key.lower().endswith(ZIP_ENDINGS) else kind_of(path) is not None
            )
        except StoreError:
            return False
        finally:
            os.close(fd)
        with self._lock:
            if len(self._looked) >= _MOST_LOOKS:
                self._looked.clear()
            self._looked[state] = found
        return found


class _Files(StoreWrapper):
    """The files of a local store, each with its own mode."""

    _inner: LocalStore

    def get_ranges(self, key: str, ranges: Sequence[ByteRange]) -> list[Blob] | None:
        return self._inner.get_file_ranges(key, ranges)


def _may_be_store(name: str) -> bool:
    return name.lower().endswith((*_EXTENSIONS, *ZIP_ENDINGS))


def _has_zarr(path: str) -> bool:
    # Few directories have zip files in them.
    from zarrfs.store.remote.archives.zip_members import member_names  # noqa: PLC0415

    return any(name.rpartition("/")[2] in _IN_ZIP for name in member_names(path))
