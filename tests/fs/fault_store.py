"""A store around another one: counts what is asked, and lets a test interfere."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from zarrfs.store.base import Blob, ByteRange, Data, Expected, ObjectInfo, Store, StoreTraits
from zarrfs.store.wrappers.wrapper import StoreWrapper

Operation = Literal["get", "ranges", "info", "list", "put", "delete"]


@dataclass(frozen=True)
class Call:
    """One request; ``ranges`` as (offset, length)."""

    operation: Operation
    key: str
    ranges: tuple[tuple[int, int], ...] = ()


class FaultStore(StoreWrapper):
    """Passes everything on to ``inner``.

    before : called with each request before it is passed on; may wait, change the
        inner store, or raise in its place.
    after : called with each request for bytes, and each change, once the inner store has answered
        it; may wait.
    near : as a local store says, or as a remote one does.
    """

    def __init__(self, inner: Store, *, near: bool | None = None) -> None:
        super().__init__(inner)
        self.inner = inner
        self._near = near
        self.calls: list[Call] = []
        self.before: Callable[[Call], None] = lambda _call: None
        self.after: Callable[[Call], None] = lambda _call: None

    @property
    def traits(self) -> StoreTraits:
        traits = super().traits
        return traits if self._near is None else traits._replace(near=self._near)

    def count(self, *operations: Operation) -> int:
        """How many requests of these kinds there were; of any kind if none is named."""
        return sum(not operations or call.operation in operations for call in self.calls)

    def get(self, key: str, *, limit: int) -> Blob | None:
        self._called(call := Call("get", key))
        blob = self.inner.get(key, limit=limit)
        self.after(call)
        return blob

    def get_ranges(self, key: str, ranges: Sequence[ByteRange]) -> list[Blob] | None:
        self._called(call := Call("ranges", key, tuple((r.offset, r.length) for r in ranges)))
        blobs = self.inner.get_ranges(key, ranges)
        self.after(call)
        return blobs

    def info(self, key: str) -> ObjectInfo | None:
        self._called(Call("info", key))
        return self.inner.info(key)

    def list_dir(self, prefix: str) -> Iterator[str]:
        self._called(Call("list", prefix))
        yield from self.inner.list_dir(prefix)

    def put(self, key: str, parts: Sequence[Data], *, expected: Expected) -> ObjectInfo:
        self._called(call := Call("put", key))
        info = super().put(key, parts, expected=expected)
        self.after(call)
        return info

    def delete(self, key: str, *, expected: Expected) -> None:
        self._called(call := Call("delete", key))
        super().delete(key, expected=expected)
        self.after(call)

    def _called(self, call: Call) -> None:
        self.calls.append(call)
        self.before(call)
