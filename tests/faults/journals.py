"""Mounts, without a kernel, that leave changes in a journal."""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.fs.fault_store import Call, FaultStore
from tests.fs.loop import Loop
from tests.fs.writable import Writable
from zarrfs.errors import StoreFull, StoreTimeout, ZarrfsError
from zarrfs.store.base import Store
from zarrfs.store.open import StoreConfig, open_store


class HookedStore(FaultStore):
    """A store on disk that calls ``before`` with the key of each put.

    silent : whether chunks cannot be read; ``asked`` counts how often that was tried.
    """

    def __init__(self, inner: Store, before: Callable[[str], None]) -> None:
        super().__init__(inner)
        self.before = before
        self.silent = False
        self.asked = 0

    get_many = Store.get_many
    put_many = Store.put_many

    def _called(self, call: Call) -> None:
        if call.operation == "put":
            self.before(call.key)
        elif self.silent and call.operation in ("get", "ranges") and call.key.startswith("c/"):
            self.asked += 1
            time.sleep(0.02)
            raise StoreTimeout(call.key, "no answer")


def full(key: str) -> None:
    raise StoreFull(key, "there is no room")


class Journalled(Writable):
    """A writable mount of a directory; ``store.before`` may be changed at any time.

    Keywords are `FileSystemConfig`'s.
    """

    def __init__(
        self,
        loop: Loop,
        source: Path,
        journal: Path,
        before: Callable[[str], None] = lambda _key: None,
        **config,
    ) -> None:
        self.hooked = HookedStore(open_store(str(source), StoreConfig()), before)
        config = {"flush_delay": 3600, "journal": str(journal), **config}
        super().__init__(loop, self.hooked, **config)

    def end(self) -> list[ZarrfsError]:
        """As at the end of a mount; why not all is stored."""
        errors = self.fs.drain()
        self.close()
        return errors


class Kept:
    """What a journal directory holds."""

    def __init__(self, journal: Path) -> None:
        self.journal = journal

    def names(self, below: str = "") -> list[str]:
        """Everything there, recursively where ``below`` is not given."""
        place = self.journal / below
        return sorted(
            str(path.relative_to(place)) for path in place.rglob("*") if not path.is_dir()
        )

    def entries(self) -> list[Path]:
        return sorted(
            path
            for path in self.journal.glob("*")
            if path.suffix in (".chunk", ".growth") and not path.name.startswith(".")
        )


def in_thread(work: Callable[[], object]) -> None:
    """Do ``work`` in a thread of its own, to its end; raise what it raises."""
    with ThreadPoolExecutor(1) as pool:
        pool.submit(work).result()
