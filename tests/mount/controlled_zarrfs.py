"""The real daemon on a store that waits or fails as files of a directory say.

Usage: controlled_zarrfs.py DIRECTORY SOURCE MOUNTPOINT -o …

In DIRECTORY, while it is there: ``hold`` makes every change of the store wait, ``full`` makes it
fail. ``waiting`` appears when a change waits. ``reads`` makes reads wait of the keys that begin as
it says; a line in ``read`` for each that waits. ``changes`` has a letter for each change.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from tests.mount.scripted import mount_scripted
from zarrfs.errors import StoreFull
from zarrfs.store.base import Blob, ByteRange, Data, Expected, ObjectInfo, Store
from zarrfs.store.wrappers.wrapper import StoreWrapper


class ControlledStore(StoreWrapper):
    """``inner``, whose changes do what ``directory`` says."""

    def __init__(self, inner: Store, directory: Path) -> None:
        super().__init__(inner)
        self._directory = directory
        self._lock = threading.Lock()
        self._changes = 0

    def get(self, key: str, *, limit: int) -> Blob | None:
        self._wait_to_read(key)
        return super().get(key, limit=limit)

    def get_ranges(self, key: str, ranges: Sequence[ByteRange]) -> list[Blob] | None:
        self._wait_to_read(key)
        return super().get_ranges(key, ranges)

    def put(self, key: str, parts: Sequence[Data], *, expected: Expected) -> ObjectInfo:
        self._change(key)
        return super().put(key, parts, expected=expected)

    def delete(self, key: str, *, expected: Expected) -> None:
        self._change(key)
        super().delete(key, expected=expected)

    def _wait_to_read(self, key: str) -> None:
        told = False
        while (prefix := _content(self._directory / "reads")) and key.startswith(prefix):
            if not told:
                with self._lock, (self._directory / "read").open("a") as file:
                    file.write(f"{key}\n")
            told = True
            time.sleep(0.001)

    def _change(self, key: str) -> None:
        with self._lock:
            self._changes += 1
            (self._directory / "changes").write_text("c" * self._changes)
        while (self._directory / "hold").exists():
            (self._directory / "waiting").touch()
            time.sleep(0.001)
        if (self._directory / "full").exists():
            raise StoreFull(key, "by this test")


def _content(path: Path) -> str:
    try:
        return path.read_text()
    except FileNotFoundError:
        return ""


def main(arguments: list[str]) -> None:
    directory, source, mount_point = arguments[: arguments.index("-o")]

    def serve(request, ready) -> None:
        # As in the real daemon, after the fork.
        from zarrfs.daemon.life.serve import ServeConfig, serve
        from zarrfs.fs.filesystem import FileSystem

        def open_filesystem(store, *others) -> FileSystem:
            return FileSystem.open(ControlledStore(store, Path(directory)), *others)

        serve(request, ready, ServeConfig(open_filesystem=open_filesystem))

    mount_scripted(source, mount_point, arguments, serve)


if __name__ == "__main__":
    main(sys.argv[1:])
