"""Lists the objects below a node, and deletes many at once."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import islice

from zarrfs.store.base import ANY, Store


def keys_below(store: Store, path: str, deepest: int = sys.maxsize) -> Iterator[str]:
    """Keys relative to ``path``, in the order of the store, of at most ``deepest`` names each.

    A directory at that depth is not listed; its key ends with a slash.

    Raises StoreListingUnsupported, StoreError.
    """
    if (listed := store.list_all(path)) is not None:
        last = ""
        for key, _ in listed:
            parts = key.split("/", deepest)
            below = "/".join(parts[:deepest]) + "/" if len(parts) > deepest else key
            if below != last:
                yield below
            last = below
        return
    stack = [("", iter(store.list_dir(path)))]
    while stack:
        prefix, names = stack[-1]
        for name in names:
            below = prefix + name
            if not name.endswith("/") or len(stack) >= deepest:
                yield below
                continue
            directory = f"{path}/{below}" if path else below
            stack.append((below, iter(store.list_dir(directory.rstrip("/")))))
            break
        else:
            stack.pop()


_LOCAL_THREADS = 4
_REMOTE_THREADS = 16
_KEYS_PER_THREAD = 64


def delete_keys(store: Store, keys: Iterable[str]) -> None:
    """Delete objects, several at a time.

    Raises the first `StoreError`; some other objects are deleted then, and the rest is not.
    """
    threads = _LOCAL_THREADS if store.traits.near else _REMOTE_THREADS
    left = iter(keys)
    with ThreadPoolExecutor(threads) as pool:
        while batch := list(islice(left, threads * _KEYS_PER_THREAD)):
            deque(pool.map(partial(store.delete, expected=ANY), batch), 0)
