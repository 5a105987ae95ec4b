"""``zarrfs.open_array``: one array as an object with blocking methods."""

from __future__ import annotations

import logging
import os
import weakref
from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from zarrfs.array.array import Array
from zarrfs.cache.caches import Caches
from zarrfs.cache.read.cached_array import CachedArray
from zarrfs.cache.write.writable_array import WritableArray
from zarrfs.errors import ReadOnly, UsageError
from zarrfs.format.chunk_grid import Index, Shape
from zarrfs.format.metadata.node import ArrayMetadata
from zarrfs.library.source import SourceOptions, find_array, open_source, source_name
from zarrfs.library.steps import ascending, boxes_to_read, boxes_to_write
from zarrfs.library.transfer.tiles import Tile, TilePlan, fetch_tiles
from zarrfs.store.base import Store
from zarrfs.views.elements.element_changes import ElementChanges
from zarrfs.views.elements.elements import Elements, FlatConfig
from zarrfs.views.elements.region import Region, Selection, select
from zarrfs.views.elements.window import Window

_log = logging.getLogger(__name__)

# Bytes of elements in one request, so that planning does not delay decoding.
_STEP_BYTES = 32 << 20
_AHEAD = 2

_DEFAULTS = SourceOptions()


def open_array(
    source: str | os.PathLike[str],
    *,
    path: str = "",
    writable: bool = False,
    options: SourceOptions = _DEFAULTS,
) -> OpenArray:
    """Open an array. Nothing of its data is read yet.

    source : a directory, a ``.zip`` file or any URL that fsspec knows, of an array or of a
        hierarchy that holds it.
    path : of the array below the source, as in ``"group/temperature"``.
    writable : whether it can be written to.
    options : memory, threads, and how the store is asked.

    Raises NodeNotFound where there is nothing, UnsupportedError where the array cannot be
    served, StoreReadOnly where it cannot be written to, and other `zarrfs.errors.ZarrfsError`
    as they come.
    """
    store = open_source(os.fspath(source), options)
    caches = None
    try:
        node, metadata = find_array(store, path, options, writable=writable)
        if writable and not metadata.layout.data_type.fixed_size:
            raise UsageError(f"{source}: elements of variable length cannot be written")
        caches = Caches(store, options.cache_config(writable=writable, memory=options.memory_bytes))
        array = OpenArray(
            store, caches, caches.open(node.path, metadata, document=node.own_document)
        )
        array._arguments = source_name(source), node.path, writable, options
        return array
    except BaseException:
        if caches is not None:
            caches.close()
        store.close()
        raise


class OpenArray:
    """A Zarr array. Methods block; any number of threads may use it at once.

    Reads from the same object see written elements at once, and these are in the
    store when `flush` or `close` has returned. ``with`` closes it::

        with zarrfs.open_array("data.zarr", writable=True) as array:
            array[0:10] = array[10:20] * 2

    A pickled array is opened anew, by its source and its options, where it is unpickled. To pickle
    one stores its changes. Each write to one that was unpickled is stored when it returns: in a
    worker nobody calls `flush`. The same holds for an array that was opened before a fork.

    Reading raises `zarrfs.errors.ChunkError`, which names the store key and the reason,
    where a chunk cannot be had or is damaged.
    """

    def __init__(self, store: Store, caches: Caches, source: CachedArray) -> None:
        """Not to be called: see `open_array`."""
        self._store = store
        self._source = source
        self._caches = caches
        self._arguments: tuple[str, str, bool, SourceOptions] | None = None
        self._stores_each_write = False
        self._process = os.getpid()
        # A program that forgets to close it should not lose its changes.
        self._finalizer = weakref.finalize(self, _close, store, caches)

    @property
    def metadata(self) -> ArrayMetadata:
        """All that the metadata documents say, whatever their version."""
        return self._array.metadata

    @property
    def shape(self) -> Shape:
        return self.metadata.shape

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return self.metadata.elements

    @property
    def nbytes(self) -> int:
        """Bytes of all elements, decoded."""
        return self.metadata.nbytes

    @property
    def dtype(self) -> np.dtype[Any]:
        """numpy type of an element in memory: little-endian; `object` for strings and bytes."""
        return self.metadata.layout.data_type.dtype

    @property
    def data_type(self) -> str:
        """Name of the data type in Zarr's own words."""
        return self.metadata.layout.data_type.name

    @property
    def chunks(self) -> Shape:
        """Shape of the chunks that are decoded one by one: inner chunks, where there are shards.

        Where they are not all alike, the longest along each axis.
        """
        return self.metadata.layout.read.largest_chunk

    @property
    def shards(self) -> Shape | None:
        """Shape of the shards, each a stored object; None where nothing is sharded."""
        layout = self.metadata.layout
        return layout.stored.largest_chunk if layout.sharded else None

    @property
    def chunk_counts(self) -> Shape:
        """Number of chunks along each axis."""
        return self.metadata.layout.read.counts

    @property
    def fill_value(self) -> Any:
        """The element that a missing chunk is filled with, as a numpy scalar."""
        layout = self.metadata.layout
        return layout.data_type.element(layout.fill)[()]

    @property
    def dimension_names(self) -> tuple[str | None, ...]:
        """One for each axis, None where it has none; empty if no axis has one."""
        return self.metadata.dimension_names

    @property
    def attributes(self) -> Mapping[str, Any]:
        """The user's attributes."""
        return self.metadata.attributes

    @property
    def codecs(self) -> list[Any]:
        """The codec pipeline as JSON, in the vocabulary of v3."""
        return list(self.metadata.summary["codecs"])

    @property
    def writable(self) -> bool:
        return isinstance(self._source, WritableArray)

    @property
    def closed(self) -> bool:
        return not self._finalizer.alive

    def __repr__(self) -> str:
        where = "/".join(filter(None, (self._store.url, self._array.path)))
        return f"<zarrfs array {where}: {self.shape} {self.data_type}>"

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of an array without axes")
        return self.shape[0]

    def __reduce__(self) -> tuple[Any, ...]:
        self.flush()
        assert self._arguments is not None
        return _open_anew, self._arguments

    # --- reading ----------------------------------------------------------------

    def read(self, selection: Selection = ...) -> NDArray[Any]:
        """A new array of the elements of a box, in C order.

        selection : integers, slices and an ellipsis, as numpy takes them; an axis given as an
            integer is dropped. Everything, if it is left out.

        Raises IndexError for any other selection, ChunkError.
        """
        region = select(selection, self.shape)
        result = np.empty(region.lengths, self.dtype)
        if result.size and not region.steps:
            self._read_into(result, region)
        elif result.size:
            selected = result[ascending(region)]
            most = max(1, self._caches.budget.total // 8 // self.dtype.itemsize)
            for box, target, picks in boxes_to_read(region, self.chunks, most):
                whole = np.empty(box.shape, self.dtype)
                self._read_into(whole, box)
                selected[target] = whole[picks]
        return result.reshape(region.result_shape)

    __getitem__ = read

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        """The whole array, for numpy's functions."""
        if copy is False:
            raise ValueError("an array in a store cannot be read without a copy")
        whole = self.read()
        return whole if dtype is None else whole.astype(dtype, copy=False)

    def read_chunk(self, index: Index) -> NDArray[Any]:
        """The elements of one chunk, cut where the array ends. Raises IndexError, ChunkError."""
        return self.read(self.chunk_region(index))

    def chunk_region(self, index: Index) -> tuple[slice, ...]:
        """The part of the array that a chunk holds. Raises IndexError."""
        grid = self.metadata.layout.read
        if not grid.contains(index):
            raise IndexError(f"{index} is not a chunk of a grid of {list(grid.counts)}")
        return Tile(grid.origin(index), grid.valid_shape(index)).slices()

    def _read_into(self, result: NDArray[Any], region: Region) -> None:
        self._check_open()
        self._source.check()
        elements = Elements(self._source, self._window(region), FlatConfig())
        flat = result.reshape(-1).view(elements.dtype)
        plan = TilePlan.make(elements.window, _STEP_BYTES // self.dtype.itemsize)
        # Chunks that do not all fit would only evict others.
        keep = result.nbytes <= self._caches.budget.total // 2

        def memory(tile: Any) -> NDArray[Any]:
            first, *others = tile.runs(region.shape)
            if others:
                return np.empty(tile.elements, elements.dtype)
            return flat[first.in_file : first.in_file + first.elements]

        for tile, values in fetch_tiles(
            elements, plan, memory, _AHEAD, keep=keep or plan.cuts_chunks
        ):
            if values.base is None:
                result[tile.slices()] = values.view(self.dtype).reshape(tile.shape)

    # --- writing ----------------------------------------------------------------

    def write(self, selection: Selection, values: ArrayLike) -> None:
        """Set the elements of a box.

        values : broadcast to the box, as numpy does. Numbers of Python are taken as they
            fit; arrays must be of a type that can be cast within its kind.

        Returns before all is stored; blocks while there is no memory for more changes.

        Raises ReadOnly, IndexError, ValueError for a shape that does not fit, TypeError for
        a type that does not, InvalidElement for what is no element of the data type, and
        other ZarrfsError where older changes must be stored first and cannot be.
        """
        self._check_open()
        if not isinstance(self._source, WritableArray):
            raise ReadOnly(f"{self!r} was not opened with writable=True")
        region = select(selection, self.shape)
        given = self._cast(values)
        while given.ndim > len(region.result_shape) and given.shape[0] == 1:
            given = given[0]
        given = np.broadcast_to(given, region.result_shape).reshape(region.lengths)
        if region.steps:
            given = given[ascending(region)]
            for box, target, _ in boxes_to_write(region):
                self._write_box(self._source, box, given[target])
        else:
            self._write_box(self._source, region, given)
        if self._stores_each_write:
            self.flush()

    def _write_box(self, source: WritableArray, region: Region, given: NDArray[Any]) -> None:
        elements = Elements(source, self._window(region), FlatConfig())
        if not given.size:
            return
        # Object by object, so that each becomes whole, and is stored, as soon as possible.
        stored = Window(self.metadata.layout.stored, region.origin, region.shape)
        most = self._caches.budget.total // 8 // self.dtype.itemsize
        plan = TilePlan.make(stored, most)
        for tile in plan:
            # Without the ellipsis, a text without axes would lose the zeros behind it.
            where: tuple[Any, ...] = (*tile.slices(), ...)
            part = np.ascontiguousarray(given[where]).reshape(-1).view(elements.dtype)
            ElementChanges(elements.box(*tile)).change(0, part)

    __setitem__ = write

    def write_chunk(self, index: Index, values: ArrayLike) -> None:
        """Set the elements of one chunk; ``values`` as `read_chunk` gives them. As `write`."""
        self.write(self.chunk_region(index), values)

    def flush(self) -> None:
        """Store all changes. Raises the first ZarrfsError; what could not be stored stays
        a change, and can be stored later.
        """
        self._check_open()
        if isinstance(self._source, WritableArray):
            self._source.flush()

    def close(self, *, discard: bool = False) -> None:
        """Store all changes, and let go of threads and memory. Idempotent.

        discard : drop the changes that are not stored yet instead.

        Raises as `flush`; the array is then still open.
        """
        if self.closed:
            return
        self._check_open()
        if not discard:
            self.flush()
        self._finalizer.detach()
        self._caches.close()
        self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """As `close`, but closes in any case: what cannot be stored then is lost, and said."""
        try:
            self.close()
        finally:
            self.close(discard=True)

    def _cast(self, values: ArrayLike) -> NDArray[Any]:
        if isinstance(values, np.ndarray | np.generic):
            return np.asarray(values).astype(self.dtype, casting="same_kind", copy=False)
        try:
            return np.asarray(values, self.dtype)
        except OverflowError as error:
            raise ValueError(f"{error}") from error

    def _window(self, region: Region) -> Window:
        return Window(self.metadata.layout.read, region.origin, region.shape)

    def _check_open(self) -> None:
        if self.closed:
            raise ValueError(f"{self!r} is closed")
        if self._process != os.getpid():
            self._open_again()

    def _open_again(self) -> None:
        """After a fork: the threads stayed in the other process, which has the changes, too."""
        assert self._arguments is not None
        self._finalizer.detach()
        anew = _open_anew(*self._arguments)
        anew._finalizer.detach()
        self.__dict__.update(anew.__dict__)
        self._finalizer = weakref.finalize(self, _close, self._store, self._caches)

    @property
    def _array(self) -> Array:
        return self._source.array


def _open_anew(source: str, path: str, writable: bool, options: SourceOptions) -> OpenArray:
    array = open_array(source, path=path, writable=writable, options=options)
    array._stores_each_write = writable
    return array


def _close(store: Store, caches: Caches) -> None:
    """At the end of an array, or of the program, that nobody has closed."""
    if caches.write_back is not None:
        for error in caches.write_back.drain():
            _log.error("not stored: %s", error)
    caches.close()
    store.close()


__all__ = ["OpenArray", "SourceOptions", "open_array"]
