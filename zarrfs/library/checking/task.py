"""A part of a check as a value: any process that reaches the store can perform it."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from zarrfs.cache.caches import Caches
from zarrfs.errors import StoreConflict
from zarrfs.format.chunk_grid import Index
from zarrfs.library.checking.array_check import ArrayCheck
from zarrfs.library.checking.findings import Finding
from zarrfs.library.source import SourceOptions, find_array, open_source


class CheckTask(NamedTuple):
    """Some stored objects of an array, which must not be another one by then."""

    source: str
    path: str
    fingerprint: str
    options: SourceOptions
    indices: tuple[Index, ...]


class CheckedObjects(NamedTuple):
    """
    unverified : chunks without a checksum.
    """

    findings: list[Finding]
    objects: int
    chunks: int
    unverified: int


def check_objects(task: CheckTask) -> CheckedObjects:
    """Read the objects of a task. Opens everything anew, so that nothing stays in a worker."""
    options = replace(task.options, consolidated="never")
    store = open_source(task.source, options)
    try:
        node, metadata = find_array(store, task.path, options)
        if metadata.fingerprint != task.fingerprint:
            raise StoreConflict(task.path, "was changed by another program while it was checked")
        caches = Caches(store, options.cache_config(writable=False, memory=options.memory_bytes))
        try:
            array = caches.open(task.path, metadata).array
            findings: list[Finding] = []
            counts: list[tuple[int, int]] = []
            check = ArrayCheck(
                array,
                node,
                caches.budget,
                repair=False,
                tell=findings.append,
                checked=lambda chunks, unverified: counts.append((chunks, unverified)),
            )
            check.run(task.indices, caches.pool, caches.loaders)
        finally:
            caches.close()
    finally:
        store.close()
    chunks, unverified = (sum(each) for each in zip((0, 0), *counts, strict=True))
    return CheckedObjects(findings, len(counts), chunks, unverified)
