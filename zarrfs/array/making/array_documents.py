"""The stored documents of one array: its own, and consolidated ones that contain its shape."""

from __future__ import annotations

import json
import logging
import math
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import NamedTuple

from zarrfs.array.array import Array
from zarrfs.array.node_readers import LARGEST_DOCUMENT, READERS, join
from zarrfs.array.presence import Presence, consolidated_above
from zarrfs.errors import (
    EncodingChanged,
    MetadataError,
    NodeNotFound,
    StoreChanged,
    StoreConflict,
    StoreError,
    UnsupportedError,
    ZarrfsError,
)
from zarrfs.format.chunk_grid import Index, Shape
from zarrfs.format.metadata.documents import (
    V1_ARRAY,
    V1_ATTRIBUTES,
    V2_ARRAY,
    V2_ATTRIBUTES,
    V3_NODE,
    load_json,
)
from zarrfs.format.metadata.node import ArrayMetadata
from zarrfs.format.metadata.resized import shapes_below, with_shape, with_shape_below
from zarrfs.format.metadata.v3 import parse_node
from zarrfs.store.base import Blob, Generation, Store

log = logging.getLogger(__name__)

_TRIES = 8
# Seconds for which an answer of a remote store about the encoding holds.
_LOOK_S = 1.0
_OWN = {3: V3_NODE, 2: V2_ARRAY, 1: V1_ARRAY}
_ATTRIBUTES = {2: V2_ATTRIBUTES, 1: V1_ATTRIBUTES}


def parse_documents(documents: Mapping[str, bytes], name: str = V3_NODE) -> ArrayMetadata:
    """The metadata of an array, from its documents by name; errors call a ``zarr.json`` ``name``.

    Raises MetadataError, and NodeNotFound for a group.
    """
    # Arrays of older versions are rare, so their readers are imported when needed.
    if (own := documents.get(V3_NODE)) is not None:
        metadata = parse_node(load_json(own, name), name)
        if not isinstance(metadata, ArrayMetadata):
            raise NodeNotFound(f"{name}: describes a group")
        return metadata
    if (own := documents.get(V2_ARRAY)) is not None:
        from zarrfs.format.metadata.older.v2 import parse_array_v2  # noqa: PLC0415

        return parse_array_v2(own, documents.get(V2_ATTRIBUTES))
    from zarrfs.format.metadata.older.v1 import parse_array_v1  # noqa: PLC0415

    return parse_array_v1(documents[V1_ARRAY], documents.get(V1_ATTRIBUTES))


class ArrayState(NamedTuple):
    """The content of an array's own document, and the state of the document."""

    metadata: ArrayMetadata
    data: bytes
    generation: Generation


class ArrayDocuments:
    """Documents of the array at ``path`` of a store. Methods block.

    zarr_format : the only version to look for; None: the newest version that is found.

    Raises NodeNotFound if there is no array.
    """

    def __init__(self, store: Store, path: str, zarr_format: int | None = None) -> None:
        self._store = store
        self.path = path
        versions = READERS if zarr_format is None else (zarr_format,)
        for version in versions:
            self.key = join(path, _OWN[version])
            if store.info(self.key) is not None:
                self.zarr_format = version
                return
        raise NodeNotFound(f"{store.url}: no Zarr array at /{path}")

    def state(self) -> ArrayState:
        """The current state. Raises NodeNotFound, MetadataError, StoreError."""
        blob = self._get(self.key)
        if blob is None:
            raise NodeNotFound(f"{self._store.url}: {self.key} is gone")
        data = bytes(blob.data)
        return ArrayState(self.parse(data), data, blob.info.generation)

    def parse(self, data: bytes) -> ArrayMetadata:
        """Parse the array's own document. Raises MetadataError."""
        documents = {_OWN[self.zarr_format]: data}
        if (name := _ATTRIBUTES.get(self.zarr_format)) is not None:
            found = self._get(join(self.path, name))
            documents |= {} if found is None else {name: bytes(found.data)}
        return parse_documents(documents, self.key)

    def check_consolidated(self, old: Shape, new: Shape) -> None:
        """Raises StoreConflict if a group above has a shape other than ``old`` and ``new``."""
        for key, below in self._groups():
            blob = self._get(key)
            shapes = [] if blob is None else shapes_below(bytes(blob.data), below, key)
            for shape in shapes:
                if shape not in (old, new):
                    raise StoreConflict(
                        key,
                        f"has the shape {list(shape)} of /{self.path}, which itself has "
                        f"{list(old)}: consolidate the metadata anew",
                    )

    def put_shape(self, old: Shape, new: Shape) -> ArrayState:
        """Store the shape ``new`` in all documents; other changes in them stay.

        The array's own document is first. If one of the others fails, it is restored.

        Raises StoreConflict if the shape is neither ``old`` nor ``new`` any more, and any other
        StoreError of the store.
        """
        before = self._put(self.key, lambda data: self._own_with(data, old, new))
        after = self.state()
        try:
            for key, below in self._groups():
                self._put(
                    key,
                    lambda data, key=key, below=below: with_shape_below(  # type: ignore[misc]
                        data, below, new, key
                    ),
                )
        except (StoreError, MetadataError):
            if before is not None:
                # Other writers may have changed the document by now; then it stays.
                with suppress(ZarrfsError):
                    self._store.put(self.key, [before], expected=after.generation)
            raise
        return after

    def _own_with(self, data: bytes, old: Shape, new: Shape) -> bytes:
        shape = self.parse(data).shape
        if shape not in (old, new):
            raise StoreConflict(self.key, f"has the shape {list(shape)}, expected {list(old)}")
        return with_shape(data, new, self.key)

    def _put(self, key: str, edit: Callable[[bytes], bytes]) -> bytes | None:
        """Replace a document by the result of ``edit``; returns the old one if they differ."""
        for _ in range(_TRIES):
            blob = self._get(key)
            if blob is None:
                return None
            data = bytes(blob.data)
            if (edited := edit(data)) == data:
                return None
            try:
                self._store.put(key, [edited], expected=blob.info.generation)
            except StoreConflict:
                log.info("another writer changed %s: reading it again", key)
                continue
            return data
        raise StoreConflict(key, "other writers keep changing it")

    def _groups(self) -> Iterator[tuple[str, str]]:
        return consolidated_above(self.path, self.zarr_format)

    def _get(self, key: str) -> Blob | None:
        return self._store.get(key, limit=LARGEST_DOCUMENT)


class StoredEncoding:
    """Whether an array is still encoded as it was when it was opened. Thread-safe.

    changed : whether the last look found another encoding.
    """

    def __init__(self, array: Array) -> None:
        self.changed = False
        self._array = array
        self._documents: ArrayDocuments | None = None
        self._seen: Generation | None = None
        self._presence = Presence(array.store, array.path, array.metadata.zarr_format)
        self._looked = -math.inf
        # By axis, where the array ends since another program has made it smaller.
        self._ends: tuple[float, ...] = (math.inf,) * len(array.metadata.shape)
        # As the last look found it.
        self._shape: Shape = array.metadata.shape

    def check(self, *, again: bool = False) -> None:
        """Look at the stored metadata, before chunks are stored. Blocks.

        again : although a remote store has been asked just now.

        An array passes that only consolidated metadata describe. Raises EncodingChanged,
        MetadataError, StoreError.
        """
        store, metadata = self._array.store, self._array.metadata
        now = time.monotonic()
        fits = not self.changed and all(map(math.isinf, self._ends))
        if not (store.traits.near or again) and now - self._looked < _LOOK_S and fits:
            return
        try:
            if self._documents is None:
                self._documents = ArrayDocuments(store, self._array.path, metadata.zarr_format)
            info = store.info(self._documents.key)
            if info is None or info.generation != self._seen:
                self._compare(self._documents)
            self.changed = False
        except StoreChanged as error:
            self.changed = True
            raise EncodingChanged(error.key, error.reason) from error
        except NodeNotFound:
            self.changed = not self._presence.described_above()
            if self.changed:
                key = join(self._array.path, _OWN[metadata.zarr_format])
                raise EncodingChanged(key, "another program has deleted the array") from None
        self._looked = now

    def check_read(self) -> None:
        """Look at the stored metadata, before chunks are read. Blocks.

        Raises EncodingChanged if present chunks would be taken for what they are not. A document
        that is missing, damaged or cannot be read now says nothing, nor does that of a distant
        store, which is not asked.
        """
        store, document = self._array.store, self._array.config.document
        if document is None or store.traits.immutable or not store.traits.near:
            return
        try:
            if self._documents is None:
                format_ = self._array.metadata.zarr_format
                self._documents = ArrayDocuments(store, self._array.path, format_)
            info = store.info(self._documents.key)
            if info is not None and info.generation != self._seen:
                # The shape is left to those who store chunks.
                self._seen = self._encoded_alike(self._documents).generation
        except (UnsupportedError, StoreChanged) as error:
            raise EncodingChanged(error.key, error.reason) from error
        except EncodingChanged:
            raise
        except ZarrfsError as error:
            log.debug("%s: its metadata cannot be compared: %s", self._array.path, error)

    def check_inside(self, stored: Index) -> None:
        """Raises EncodingChanged if a part of the object is not in the array any more, or if it
        has elements of others behind the end that is known here, which storing would erase.
        """
        if self._shape == self._array.metadata.shape:
            return  # as nearly always, and at once: this is asked of each object
        key = self._array.key(stored)
        if self.ends_before(stored):
            raise EncodingChanged(key, "another program has made the array smaller")
        axes = zip(self._array.layout.stored.shape, self._stops(stored), self._shape, strict=True)
        if any(known < min(stop, end) for known, stop, end in axes):
            raise EncodingChanged(
                key,
                "another program has made the array larger, and may have stored elements in this "
                "object: mount the source again",
            )

    def reaches_beyond(self, stored: Index) -> bool:
        """Whether the object can have elements behind the end that is known here."""
        grid = self._array.layout.stored
        return grid.valid_shape(stored) != grid.chunk_shape(stored)

    def ends_before(self, stored: Index) -> bool:
        """Whether the last look found that the array ends before the object does."""
        shape, stops = self._array.metadata.shape, self._stops(stored)
        return any(
            min(stop, extent) > end
            for stop, extent, end in zip(stops, shape, self._ends, strict=True)
        )

    def _stops(self, stored: Index) -> Iterator[int]:
        """By axis, where an object stops, as if it were whole."""
        grid = self._array.layout.stored
        return map(sum, zip(grid.origin(stored), grid.chunk_shape(stored), strict=True))

    def _compare(self, documents: ArrayDocuments) -> None:
        # Rows of this program need not be in the metadata yet, and may be stored meanwhile.
        known = tuple(map(min, self._array.stored_shape, self._array.metadata.shape))
        state = self._encoded_alike(documents)
        now = self._shape = state.metadata.shape
        self._ends = tuple(n if n < k else math.inf for n, k in zip(now, known, strict=True))
        self._array.stored_shape = tuple(map(max, now, known))
        self._seen = state.generation

    def _encoded_alike(self, documents: ArrayDocuments) -> ArrayState:
        try:
            state = documents.state()
        except NodeNotFound:
            self.changed = self._array.store.info(documents.key) is not None
            if self.changed:
                raise EncodingChanged(
                    documents.key, "describes a group in place of the array"
                ) from None
            raise
        self.changed = not _alike(self._array.metadata, state.metadata)
        if self.changed:
            raise EncodingChanged(
                documents.key,
                "another program has changed how the array is encoded, or consolidated metadata "
                "contradict this document: then consolidate the metadata anew",
            )
        return state


def is_array(name: str, data: bytes) -> bool:
    """Whether a document of this name describes an array."""
    try:
        parse_documents({name: data}, name)
    except (MetadataError, NodeNotFound):
        return False
    return True


def encoded_alike(name: str, a: bytes, b: bytes) -> bool:
    """Whether chunks of the arrays that two documents describe are encoded in the same way."""
    try:
        return _alike(*(parse_documents({name: data}, name) for data in (a, b)))
    except (MetadataError, NodeNotFound):
        return False


def larger(name: str, a: bytes, b: bytes) -> bool:
    """Whether the array of the second document has elements behind an end of that of the first."""
    before, now = (parse_documents({name: data}, name).shape for data in (a, b))
    return any(extent > end for end, extent in zip(before, now, strict=True))


def cut(name: str, a: bytes, b: bytes) -> bytes:
    """The first document, with an array that ends where that of the second does, or before."""
    shapes = (parse_documents({name: data}, name).shape for data in (a, b))
    return json.dumps(json.loads(a) | {"shape": [*map(min, *shapes)]}).encode()


def _alike(a: ArrayMetadata, b: ArrayMetadata) -> bool:
    """Whether chunks of both are encoded in the same way, whatever the shape and the words."""
    said = [json.dumps(each.summary, sort_keys=True, default=dict) for each in (a, b)]
    if said[0] == said[1]:
        return True
    chunks = a.layout.stored.regular_shape
    return chunks is not None and _encoding(a) == _encoding(b)


def _encoding(metadata: ArrayMetadata) -> tuple[object, ...]:
    layout = metadata.layout
    codecs = (layout.levels, layout.pipeline, layout.data_type)
    return layout.stored.regular_shape, metadata.chunk_keys, layout.fill, *codecs
