"""Several stores as one: a group that has each of them by a name."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from zarrfs.errors import StoreError, StoreReadOnly
from zarrfs.store.base import (
    Blob,
    Data,
    Expected,
    ObjectInfo,
    Put,
    Store,
    StoreTraits,
)
from zarrfs.store.wrappers.assumed import AssumedStore, assumed
from zarrfs.store.wrappers.wrapper import OneRead

_T = TypeVar("_T")

# The documents by which each version of Zarr knows the group.
_GROUP = {
    "zarr.json": assumed(b'{"zarr_format": 3, "node_type": "group", "attributes": {}}\n'),
    ".zgroup": assumed(b'{"zarr_format": 2}\n'),
}


def names_of(sources: Sequence[str], name_of: Callable[[str], str]) -> list[str]:
    """A name for each source; a number follows one that an earlier source has.

    name_of : the name that a source would have alone.
    """
    names: list[str] = []
    for source in sources:
        name = wanted = name_of(source)
        number = 1
        while name in names:
            number += 1
            name = f"{wanted}-{number}"
        names.append(name)
    return names


class JoinedStores(OneRead):
    """The objects of each store below its name, with the interface of `Store`.

    The root is a group that no store has. Its document cannot be changed.
    """

    def __init__(self, stores: Mapping[str, Store]) -> None:
        self._stores = dict(stores)
        self._all = tuple(self._stores.values())
        self._root = AssumedStore(self._all[0], _GROUP)

    @property
    def url(self) -> str:
        return ", ".join(store.local_path or store.url for store in self._all)

    @property
    def traits(self) -> StoreTraits:
        near, in_flight, immutable = zip(*(store.traits for store in self._all), strict=True)
        return StoreTraits(all(near), max(in_flight), all(immutable))

    @property
    def read_only(self) -> str | None:
        for name, store in self._stores.items():
            if (reason := store.read_only) is not None:
                return f"{name}: {reason}"
        return None

    @property
    def trouble(self) -> Mapping[str, Any] | None:
        return next((found for store in self._all if (found := store.trouble) is not None), None)

    def get_many(self, keys: Sequence[str], *, limit: int) -> Iterator[Blob | StoreError | None]:
        found = self._store_of_all(keys)
        if found is None:
            return super().get_many(keys, limit=limit)
        name, store = found
        return self._each(name, store.get_many([_inside(key) for key in keys], limit=limit))

    def real_key(self, key: str) -> str:
        name, _, inside = key.partition("/")
        store = self._stores.get(name)
        real = inside if store is None else store.real_key(inside)
        return real if os.path.isabs(real) else f"{name}/{real}".rstrip("/")

    def list_dir(self, prefix: str) -> Iterator[str]:
        if not prefix:
            yield from (*_GROUP, *(f"{name}/" for name in self._stores))
            return
        name, _, inside = prefix.partition("/")
        if (store := self._stores.get(name)) is not None:
            try:
                yield from store.list_dir(inside)
            except StoreError as error:
                raise _named(name, error) from error

    def list_all(self, prefix: str) -> Iterator[tuple[str, ObjectInfo]] | None:
        name, _, inside = prefix.partition("/")
        store = self._stores.get(name)
        return None if store is None else store.list_all(inside)

    def put(self, key: str, parts: Sequence[Data], *, expected: Expected) -> ObjectInfo:
        done = self._read(key, lambda store, inside: store.put(inside, parts, expected=expected))
        if done is None:
            raise StoreReadOnly(key, "belongs to no source of the mount")
        return done

    def put_many(self, puts: Sequence[Put]) -> list[ObjectInfo | StoreError]:
        found = self._store_of_all([put.key for put in puts])
        if found is None:
            return super().put_many(puts)
        name, store = found
        inside = [put._replace(key=_inside(put.key)) for put in puts]
        return list(self._each(name, iter(store.put_many(inside))))

    def delete(self, key: str, *, expected: Expected) -> None:
        self._read(key, lambda store, inside: store.delete(inside, expected=expected))

    def leftovers(self, *, remove: bool) -> list[str]:
        return [
            f"{name}/{path}"
            for name, store in self._stores.items()
            for path in store.leftovers(remove=remove)
        ]

    def free_space(self) -> tuple[int, int] | None:
        known = [space for store in self._all if (space := store.free_space()) is not None]
        return min(known, key=lambda space: space[1], default=None)

    def give_up(self) -> None:
        for store in self._all:
            store.give_up()

    def close(self) -> None:
        for store in self._all:
            store.close()

    def _read(self, key: str, ask: Callable[[Store, str], _T | None]) -> _T | None:
        name, slash, inside = key.partition("/")
        store = self._stores.get(name)
        if store is None or not slash:
            return ask(self._root, key) if key in _GROUP else None
        try:
            return ask(store, inside)
        except StoreError as error:
            raise _named(name, error) from error

    @staticmethod
    def _each(name: str, answers: Iterator[_T | StoreError]) -> Iterator[_T | StoreError]:
        for answer in answers:
            yield _named(name, answer) if isinstance(answer, StoreError) else answer

    def _store_of_all(self, keys: Sequence[str]) -> tuple[str, Store] | None:
        """The store that has all the keys; None where there is not one."""
        names = {key.partition("/")[0] for key in keys if "/" in key}
        if len(names) != 1 or not all("/" in key for key in keys):
            return None
        (name,) = names
        store = self._stores.get(name)
        return None if store is None else (name, store)


def _inside(key: str) -> str:
    return key.partition("/")[2]


def _named(name: str, error: StoreError) -> StoreError:
    return type(error)(f"{name}/{error.key}" if error.key else name, error.reason)
