"""Base for stores around another store that change a part of its behaviour."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from zarrfs.errors import StoreError
from zarrfs.store.base import (
    Blob,
    ByteRange,
    Conditional,
    Data,
    Expected,
    ObjectInfo,
    Put,
    Steps,
    Store,
    StoreTraits,
    get_one_by_one,
    get_step_by_step,
    put_one_by_one,
    real_key,
)


class StoreWrapper:
    """Passes every call on to ``inner``, with the interface of `Store`."""

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
    def conditional(self) -> Conditional:
        return self._inner.conditional

    @property
    def trouble(self) -> Mapping[str, Any] | None:
        return self._inner.trouble

    def get(self, key: str, *, limit: int) -> Blob | None:
        return self._inner.get(key, limit=limit)

    def get_many(self, keys: Sequence[str], *, limit: int) -> Iterator[Blob | StoreError | None]:
        # Through `get`, which wrappers override.
        return get_one_by_one(self, keys, limit)

    def get_ranges(self, key: str, ranges: Sequence[ByteRange]) -> list[Blob] | None:
        return self._inner.get_ranges(key, ranges)

    def get_in_steps(self, wanted: Sequence[Steps]) -> Iterator[list[Blob] | StoreError | None]:
        # Through `get_ranges`, which wrappers override.
        return get_step_by_step(self, wanted)

    def real_key(self, key: str) -> str:
        """See `KnowsLinks`."""
        return real_key(self._inner, key)

    def info(self, key: str) -> ObjectInfo | None:
        return self._inner.info(key)

    def list_dir(self, prefix: str) -> Iterator[str]:
        return self._inner.list_dir(prefix)

    def list_all(self, prefix: str) -> Iterator[tuple[str, ObjectInfo]] | None:
        return self._inner.list_all(prefix)

    def put(self, key: str, parts: Sequence[Data], *, expected: Expected) -> ObjectInfo:
        return self._inner.put(key, parts, expected=expected)

    def put_many(self, puts: Sequence[Put]) -> list[ObjectInfo | StoreError]:
        # Through `put`, which wrappers override.
        return put_one_by_one(self, puts)

    def delete(self, key: str, *, expected: Expected) -> None:
        self._inner.delete(key, expected=expected)

    def leftovers(self) -> list[str]:
        return self._inner.leftovers()

    def remove_leftovers(self) -> list[str]:
        return self._inner.remove_leftovers()

    def free_space(self) -> tuple[int, int] | None:
        return self._inner.free_space()

    def give_up(self) -> None:
        self._inner.give_up()

    def close(self) -> None:
        self._inner.close()
