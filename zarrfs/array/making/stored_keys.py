"""Lists the objects below a node."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from zarrfs.store.base import Store


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
