"""Changed HDF5, TIFF and GRIB files: what is served of one is what its own library reads."""

import hashlib
import json
import os
import resource
import select
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import cache, partial
from itertools import product
from pathlib import Path
from random import Random
from typing import Any, BinaryIO, NamedTuple

import eccodes
import h5py
import numpy as np
import tifffile

from tests.fuzz.mutate import mutated_bytes, mutated_within
from tests.fuzz.stores import RETRY
from tests.interop.foreign import hdf5_files, hdf5_written_by, test_foreign_files
from tests.interop.foreign.test_hdf5 import datasets, expected, little
from zarrfs.array.array import Array, ArrayConfig
from zarrfs.array.hierarchy import Hierarchy
from zarrfs.array.shards.parts import PartCache
from zarrfs.errors import StoreError, ZarrfsError
from zarrfs.format.metadata.node import ArrayMetadata
from zarrfs.store.base import Store
from zarrfs.store.foreign import kept, translate
from zarrfs.store.open import StoreConfig, open_store

_LARGEST_FILE = 128 << 10
# Files that are larger.
_LARGE = {"contiguous_in_pieces", "filters", "paged", "plugins", "text"}
_MOST_ELEMENTS, _MOST_CHUNKS = 1 << 18, 1000
_SECONDS = 20.0
_MEMORY = 64 << 20
_MAGIC = 8

Ranges = list[tuple[int, int]]


class Seed(NamedTuple):
    """A file, and the ranges of its bytes that hold no elements."""

    folder: Path
    name: str
    data: bytes
    ranges: Ranges


class Foreign:
    """A case changes one file, mostly where its structure is, and reads all that is served of it.

    makers : of the files, each of which is made when a case first changes it.
    elements : the elements of each array as its own library reads them, by path, as little-endian
        bytes. Called in a process of its own.
    """

    def __init__(
        self,
        makers: Sequence[Callable[[Path], Seed]],
        elements: Callable[[str], Iterator[tuple[str, bytes]]],
    ) -> None:
        self._place = tempfile.TemporaryDirectory()
        self._makers = [cache(maker) for maker in makers]
        self._elements = elements
        # This process has imported everything already: a copy of it does what a new one would.
        kept._make = _translated

    def run(self, random: Random) -> str | None:
        seed = random.choice(self._makers)(Path(self._place.name))
        if random.random() < 0.9:
            data = mutated_within(random, seed.data, seed.ranges)
        else:
            data = mutated_bytes(random, seed.data, [seed.data])
        path = seed.folder / seed.name
        path.write_bytes(data)
        try:
            with closing(open_store(str(path), StoreConfig(retry=RETRY))) as store:
                served = dict(_served(store))
        except ZarrfsError:
            return "not opened"
        read = {at: digest for at, digest in served.items() if digest is not None}
        if read:
            wanted = json.loads(_apart(lambda file: self._write(str(path), file))[1] or b"{}")
            wrong = [at for at, digest in read.items() if wanted.get(at, digest) != digest]
            assert not wrong, f"{wrong} of {seed.name} are not what the library reads"
        return None if len(read) == len(served) else "error"

    def _write(self, path: str, file: BinaryIO) -> None:
        found = {at: _digest(data) for at, data in self._elements(path)}
        file.write(json.dumps(found).encode())


def _digest(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def _served(store: Store) -> Iterator[tuple[str, str | None]]:
    """All arrays by path, with a digest of their elements; None for errors and notes."""
    hierarchy = Hierarchy(store, memory=_MEMORY)
    ahead = [""]
    while ahead:
        path = ahead.pop()
        node = hierarchy.node(path) if path else hierarchy.root()
        if node is None or node.metadata is None:
            yield path, None
        elif isinstance(node.metadata, ArrayMetadata):
            yield from _read(store, path, node.metadata)
        else:
            ahead += [f"{path}/{name}".lstrip("/") for name in hierarchy.children(path)]


def _read(store: Store, path: str, metadata: ArrayMetadata) -> Iterator[tuple[str, str | None]]:
    layout = metadata.layout
    if metadata.elements > _MOST_ELEMENTS or layout.read.chunks > _MOST_CHUNKS:
        return
    try:
        array = Array(store, path, metadata, PartCache(1 << 20), ArrayConfig(_MEMORY, True))
    except ZarrfsError:
        yield path, None
        return
    whole = None
    for result in array.read_chunks(list(np.ndindex(*layout.read.counts))):
        if result.error is not None:
            yield path, None
            return
        chunk = result.chunk
        assert chunk is not None
        if whole is None:
            whole = np.empty(metadata.shape, chunk.dtype)
        origin = layout.read.origin(result.index)
        ends = [min(at + n, m) for at, n, m in zip(origin, chunk.shape, whole.shape, strict=True)]
        inside = tuple(slice(end - at) for at, end in zip(origin, ends, strict=True))
        whole[tuple(map(slice, origin, ends))] = chunk[inside]
    if whole is not None and layout.data_type.fixed_size:
        yield path, _digest(whole.astype(little(whole.dtype)).tobytes())


# --- processes ------------------------------------------------------------------


def _apart(work: Callable[[BinaryIO], object]) -> tuple[int, bytes]:
    """Have a copy of this process do ``work``: its status, negative for signals, and its output."""
    reading, writing = os.pipe()
    if not (pid := os.fork()):
        status = 1
        try:
            os.close(reading)
            resource.setrlimit(resource.RLIMIT_AS, (8 << 30, resource.RLIM_INFINITY))
            with open(writing, "wb") as file:
                sys.stderr = open(os.devnull, "w")  # noqa: SIM115 - this process is about to end
                status = work(file) or 0
        finally:
            os._exit(int(status))
    os.close(writing)
    parts, end = [], time.monotonic() + _SECONDS
    with open(reading, "rb", buffering=0) as file:
        while select.select([file], [], [], max(0.0, end - time.monotonic()))[0]:
            if not (part := file.read(1 << 16)):
                break
            parts.append(part)
        else:
            os.kill(pid, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), b"".join(parts)


def _translated(path: str, shown: str, kind: Any, target: int, seconds: float, fd: Any) -> None:
    """Stands in for what starts the program: a copy of this process is that program."""
    alive, ours = os.pipe()

    def work(file: BinaryIO) -> int:
        os.close(ours)
        sys.argv = ["", kind.name, path, str(target), str(kept._LARGEST), str(seconds), str(alive)]
        # The file of the parent has the same place.
        return translate.main()

    try:
        status, _ = _apart(work)
    finally:
        os.close(alive)
        os.close(ours)
    if status:
        raise StoreError(shown, f"ended with {status}")


# --- the files ------------------------------------------------------------------


def _rest(size: int, taken: Ranges) -> Ranges:
    """The ranges of a file that are not in ``taken``, and do not say what it is."""
    found, at = [], _MAGIC
    for start, stop in sorted(taken):
        if start > at:
            found.append((at, start))
        at = max(at, stop)
    return [*found, (at, size)] if at < size else found


def hdf5() -> Foreign:
    assert hdf5_written_by  # it has added its files
    names = [name for name in hdf5_files.FILES if name not in _LARGE]
    return Foreign([partial(_hdf5_seed, name) for name in names], _hdf5_elements)


def _hdf5_seed(name: str, place: Path) -> Seed:
    path = hdf5_files.write(name, place / name)
    assert path.stat().st_size <= _LARGEST_FILE
    taken: Ranges = []
    with h5py.File(path) as file:
        for dataset in datasets(file).values():
            if dataset is None or dataset.file.filename != str(path):
                continue
            if dataset.chunks:
                for number in range(dataset.id.get_num_chunks()):
                    one = dataset.id.get_chunk_info(number)
                    taken.append((one.byte_offset, one.byte_offset + one.size))
            elif (at := dataset.id.get_offset()) is not None:
                taken.append((at, at + dataset.id.get_storage_size()))
    return Seed(path.parent, path.name, path.read_bytes(), _rest(path.stat().st_size, taken))


def _hdf5_elements(path: str) -> Iterator[tuple[str, bytes]]:
    with h5py.File(path) as file:
        for name, dataset in datasets(file).items():
            try:
                if dataset is None or dataset.size > _MOST_ELEMENTS or _contradicts(dataset):
                    continue
                if isinstance(found := expected(dataset), np.ndarray) and found.dtype.kind != "O":
                    yield name, found.astype(little(found.dtype)).tobytes()
            except (OSError, RuntimeError, TypeError, ValueError, KeyError, MemoryError):
                continue


def _contradicts(dataset: Any) -> bool:
    """Whether HDF5 does not find a chunk that it lists, and so reads fill values for it.

    Raises OSError and RuntimeError for that as well.
    """
    listed: list[Any] = []
    if dataset.chunks:
        dataset.id.chunk_iter(listed.append)
    return any(len(dataset.id.read_direct_chunk(one.chunk_offset)[1]) != one.size for one in listed)


def tiff() -> Foreign:
    image, stack = test_foreign_files.IMAGE, test_foreign_files.STACK
    files: Mapping[str, Any] = {
        **test_foreign_files.TIFFS,
        "last strip": (image, {"rowsperstrip": 16, "compression": "zlib"}),
        "ome": (stack, {"ome": True, "metadata": {"axes": "TYX"}}),
        "imagej": (stack, {"imagej": True}),
    }
    makers = [partial(_tiff_seed, number, *made) for number, made in enumerate(files.values())]
    return Foreign(makers, _tiff_elements)


def _tiff_seed(number: int, pixels: Any, options: Mapping[str, Any], place: Path) -> Seed:
    path = place / f"{number}.tif"
    tifffile.imwrite(path, pixels, **options)
    with tifffile.TiffFile(path) as file:
        taken = [
            (at, at + size)
            for page in file.pages
            for at, size in zip(page.dataoffsets, page.databytecounts, strict=True)
        ]
    data = path.read_bytes()
    return Seed(place, path.name, data, _rest(len(data), taken))


def _tiff_elements(path: str) -> Iterator[tuple[str, bytes]]:
    with tifffile.TiffFile(path) as file:
        for number, series in enumerate(file.series):
            counts = [count for page in series.pages if page for count in page.databytecounts]
            # tifffile moves what lies behind a part without bytes.
            if series.size > _MOST_ELEMENTS or not all(counts):
                continue
            try:
                found = series.asarray()
            except Exception:  # noqa: BLE001 - then there is nothing to compare
                continue
            data = found.astype(little(found.dtype)).tobytes()
            yield str(number), data
            if len(file.series) == 1:
                yield "", data


def grib() -> Foreign:
    # ecCodes itself decodes the messages, so that there is nothing else to compare them with.
    makers = [partial(_grib_seed, *made) for made in product((1, 2), test_foreign_files.GRIDS)]
    return Foreign(makers, lambda path: iter(()))


def _grib_seed(edition: int, grid: str, place: Path) -> Seed:
    path = place / f"{grid}{edition}.grib"
    test_foreign_files.write_sample(path, f"{grid}{edition}", **test_foreign_files.GRIDS[grid])
    data = path.read_bytes()
    handle = eccodes.codes_new_from_message(data)
    section = 7 if edition == 2 else 4
    at = eccodes.codes_get(handle, f"offsetSection{section}")
    eccodes.codes_release(handle)
    # Its own header is no element.
    return Seed(place, path.name, data, [(_MAGIC, min(at + 12, len(data)))])
