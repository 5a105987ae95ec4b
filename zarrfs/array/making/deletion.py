"""Deletes many objects of a store at once."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor

from zarrfs.store.base import ANY, Store

_LOCAL_THREADS = 4
_REMOTE_THREADS = 16
_WAITING_PER_THREAD = 8


def delete_keys(store: Store, keys: Iterable[str]) -> None:
    """Delete objects, several at a time; the caller may list them meanwhile.

    Raises the first `StoreError`; some other objects are deleted then, and the rest is not.
    """
    threads = _LOCAL_THREADS if store.traits.near else _REMOTE_THREADS
    with ThreadPoolExecutor(threads) as pool:
        waiting: deque[Future[None]] = deque()
        try:
            for key in keys:
                waiting.append(pool.submit(store.delete, key, expected=ANY))
                if len(waiting) >= threads * _WAITING_PER_THREAD:
                    waiting.popleft().result()
            while waiting:
                waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()
