"""What the views read chunks from, whether it can be written to or not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from zarrfs.array.array import Array
from zarrfs.array.block import Block
from zarrfs.cache.read.chunk_cache import Deliver
from zarrfs.cache.read.freshness import Freshness
from zarrfs.format.chunk_grid import Index
from zarrfs.format.codec import Chunk
from zarrfs.jobs.ticket import Done


class ChunkSource(Protocol):
    """Decoded chunks of one array; see `CachedArray` for what each of these does."""

    @property
    def array(self) -> Array: ...

    @property
    def freshness(self) -> Freshness: ...

    @property
    def shares_memory(self) -> bool: ...

    @property
    def state(self) -> tuple[int, ...]: ...

    @property
    def largest_load(self) -> int: ...

    def get(self, index: Index) -> Chunk | None: ...

    def get_all(self, indices: Sequence[Index]) -> Sequence[Chunk] | None: ...

    def get_row(self, index: Index, last: Sequence[int]) -> Sequence[memoryview] | None: ...

    def get_bytes(self, index: Index) -> memoryview | None: ...

    def passed(self, index: Index) -> None: ...

    def request(
        self,
        indices: Sequence[Index],
        deliver: Deliver,
        done: Done,
        *,
        keep: bool = True,
        ahead: bool = False,
    ) -> None: ...

    def scan(self, block: Block, done: Done, *, ahead: bool) -> None: ...

    def run(self, job: Callable[[], None], *, ahead: bool) -> None: ...

    def check(self) -> bool: ...
