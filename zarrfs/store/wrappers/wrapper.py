"""Base for stores around another store that change a part of its behaviour."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from zarrfs.store.base import (
    Blob,
    ByteRange,
    Data,
    Expected,
    ObjectInfo,
    Store,
    StoreTraits,
)

_T = TypeVar("_T")


class OneRead(Store):
    """A store that answers every question about one object in one way."""

    def _read(self, key: str, ask: Callable[[Store, str], _T | None]) -> _T | None:
        """``ask`` of the store that has the object, with its key there; None: it has none."""
        raise NotImplementedError

    def get(self, key: str, *, limit: int) -> Blob | None:
        return self._read(key, lambda store, at: store.get(at, limit=limit))

    def get_ranges(self, key: str, ranges: Sequence[ByteRange]) -> list[Blob] | None:
        return self._read(key, lambda store, at: store.get_ranges(at, ranges))

    def info(self, key: str) -> ObjectInfo | None:
        return self._read(key, lambda store, at: store.info(at))


class StoreWrapper(OneRead):
    """Passes every call on to ``inner``.

    Calls for several objects become calls for one each, and `may_exist` rules out no key: wrappers
    override these where they can pass them on.
    """

    def __init__(self, inner: Store) -> None:
        self._inner = inner

    @property
    def url(self) -> str:
        return self._inner.url

    @property
    def local_path(self) -> str | None:
        return self._inner.local_path

    @property
    def traits(self) -> StoreTraits:
        return self._inner.traits

    @property
    def read_only(self) -> str | None:
        return self._inner.read_only

    @property
    def trouble(self) -> Mapping[str, Any] | None:
        return self._inner.trouble

    def _read(self, key: str, ask: Callable[[Store, str], _T | None]) -> _T | None:
        return ask(self._inner, key)

    def real_key(self, key: str) -> str:
        return self._inner.real_key(key)

    def list_dir(self, prefix: str) -> Iterator[str]:
        return self._inner.list_dir(prefix)

    def list_all(self, prefix: str) -> Iterator[tuple[str, ObjectInfo]] | None:
        return self._inner.list_all(prefix)

    def put(self, key: str, parts: Sequence[Data], *, expected: Expected) -> ObjectInfo:
        return self._inner.put(key, parts, expected=expected)

    def delete(self, key: str, *, expected: Expected) -> None:
        self._inner.delete(key, expected=expected)

    def leftovers(self, *, remove: bool) -> list[str]:
        return self._inner.leftovers(remove=remove)

    def free_space(self) -> tuple[int, int] | None:
        return self._inner.free_space()

    def give_up(self) -> None:
        self._inner.give_up()

    def close(self) -> None:
        self._inner.close()
