"""A part of a copy as a value: any process that reaches both stores can perform it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from functools import reduce

from zarrfs.cache.caches import Caches
from zarrfs.library.copying.array_copy import Copied, CopyTask
from zarrfs.library.copying.boxes import AT_ONCE, BoxCopy
from zarrfs.library.source import SourceOptions, find_array, open_caches, open_source
from zarrfs.store.base import Store
from zarrfs.store.open import open_store, synced

# The caches of the source have this part of the memory.
_SHARE = 3


def perform(task: CopyTask) -> Copied:
    """Copy the boxes of a task. Opens everything anew, so that nothing stays in a worker."""
    copy = task.copy
    with ExitStack() as stack:
        source = open_source(copy.source, copy.options)
        stack.callback(source.close)
        _, metadata = find_array(source, copy.path, copy.options)
        target = open_target(copy.target, copy.options)
        stack.callback(target.close)
        caches = stack.enter_context(caches_of(source, copy.options))
        boxes = BoxCopy(caches, source, metadata, target, copy)
        stack.callback(boxes.close)
        with ThreadPoolExecutor(AT_ONCE) as pool:
            done = reduce(Copied.plus, pool.map(boxes.copy, task.tiles), Copied())
        synced(target)
        return done


def open_target(target: str, options: SourceOptions) -> Store:
    """The destination for chunks. `synced` makes them durable, many at once."""
    return open_store(target, options.store_config()._replace(durable=False))


def caches_of(source: Store, options: SourceOptions) -> closing[Caches]:
    return open_caches(source, options, memory=options.memory_bytes // _SHARE)
