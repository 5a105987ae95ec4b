"""A running mount performs commands: those of `zarrfs control`, `diff` and `commit`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from itertools import islice
from typing import Any, NamedTuple, TypeVar

import trio

from zarrfs.daemon.life.control_socket import Request
from zarrfs.daemon.life.drain import ChangesNotStored
from zarrfs.errors import MountError, UsageError
from zarrfs.fs.filesystem import FileSystem
from zarrfs.memory.default_memory import LEAST_MEMORY
from zarrfs.store.wrappers.overlay import OverlayStore

_T = TypeVar("_T")

# Objects of an overlay that an answer names.
_MOST_SHOWN = 1000


class Commands(NamedTuple):
    """
    overlay : the store, where the mount keeps changes in an overlay.
    sync : has the kernel write out mapped pages.
    """

    filesystem: FileSystem
    overlay: OverlayStore | None
    sync: Callable[[], Awaitable[None]]

    async def perform(self, request: Request) -> dict[str, Any]:
        """The answer to a request. Raises ZarrfsError."""
        filesystem = self.filesystem
        command = request.get("command")
        budget, used = filesystem.memory
        if command == "flush":
            return {"stored_bytes": await self._flush()}
        if command == "drop":
            await filesystem.drop_caches()
            return {"freed_bytes": max(0, used - filesystem.memory[1])}
        if command == "memory" and isinstance(size := request.get("size"), int):
            if size < LEAST_MEMORY:
                raise UsageError(f"{size} bytes are less than the {LEAST_MEMORY >> 20}M needed")
            await filesystem.set_memory(size)
            return {"memory": size, "before": budget}
        if command in ("diff", "commit"):
            return await self._overlaid(command, budget)
        raise UsageError(f"unknown command {command!r}")

    async def _flush(self) -> int:
        filesystem = self.filesystem
        before = filesystem.dirty_bytes
        # Pages that programs changed in mappings are the kernel's until it hands them over.
        await self.sync()
        stored = max(before, filesystem.dirty_bytes)
        if errors := await filesystem.store_changes():
            reasons = "; ".join(dict.fromkeys(map(str, errors)))
            raise ChangesNotStored(f"not all changes could be stored: {reasons}")
        return stored

    async def _overlaid(self, command: str, memory: int) -> dict[str, Any]:
        """List what the overlay holds, or store it in the source."""
        overlay = self.overlay
        if overlay is None:
            raise MountError("the mount has no overlay: its changes are in the source")
        await self._flush()
        if command == "commit":
            done = await _in_thread(partial(overlay.commit, memory))
            first = dict(islice(done.kept.items(), _MOST_SHOWN))
            return {
                "stored": done.stored,
                "removed": done.removed,
                "kept": first,
                "kept_objects": len(done.kept),
            }
        changes = await _in_thread(lambda: list(overlay.changes()))
        return {
            "changes": changes[:_MOST_SHOWN],
            "objects": len(changes),
            "bytes": sum(size or 0 for _, size in changes),
        }


async def _in_thread(work: Callable[[], _T]) -> _T:
    """Await ``work``, which the end of the mount leaves behind: it may be cut short anywhere."""
    return await trio.to_thread.run_sync(work, abandon_on_cancel=True)
