"""Object elements of v2 other than strings and bytes: JSON, MessagePack, categories, arrays.

https://numcodecs.readthedocs.io/en/stable/#codecs

Their elements become JSON values. The counts and shapes in these formats are checked against those
of the chunk, never trusted.
"""

from __future__ import annotations

import codecs
import json
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numcodecs
import numpy as np

from zarrfs import bounds
from zarrfs.errors import DecodeError, reason_of
from zarrfs.format.codec import Buffer, Chunk, ChunkSpec, SizeBound
from zarrfs.format.codecs.numcodecs_config import configured
from zarrfs.format.extension_types.variable import LARGEST_CHUNK
from zarrfs.format.unserved import UnservedError, missing_package

OBJECT_CODECS = ("json2", "msgpack2", "categorize", "vlen-array", "json", "msgpack")
# Forms of numcodecs before 0.6, which contain the dtype of a chunk but not its shape.
_LEGACY = {"json": "json2", "msgpack": "msgpack2"}

_ENCODINGS = frozenset(
    {"utf-8", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "ascii", "iso8859-1"}
)


@dataclass(frozen=True, slots=True)
class ObjectCodec:
    """``configuration`` is that of numcodecs, as JSON text, so that it can be compared."""

    configuration: str

    def bind(self, spec: ChunkSpec) -> BoundObjects:
        members = json.loads(self.configuration)
        present = _LEGACY.get(members["id"], members["id"])
        if present == "msgpack2" and "msgpack2" not in numcodecs.registry.codec_registry:
            raise missing_package(f"the codec {members['id']}", "msgpack")
        if "encoding" in members and not _is_plain_encoding(members["encoding"]):
            raise UnservedError(f"codec {members['id']!r} in {members['encoding']!r}")
        if spec.data_type.fixed_size:
            raise UnservedError(f"codec {members['id']!r} on elements of a fixed size")
        return BoundObjects(spec, configured({**members, "id": present}), members)


def _is_plain_encoding(name: Any) -> bool:
    """Whether decoding takes linear time; some encodings of Python take quadratic time."""
    try:
        return isinstance(name, str) and codecs.lookup(name).name in _ENCODINGS
    except LookupError:
        return False


def _unpacked(data: bytes, *, raw: bool) -> Any:
    """The value of a MessagePack document. Raises ValueError."""
    containers = 0

    def count(container: Any) -> Any:
        nonlocal containers
        containers += 1
        if bounds.packed_size(len(data), containers) > bounds.LARGEST_OBJECTS:
            raise bounds.OutOfBoundsError("takes too much memory once it is parsed")
        return container

    count(None)
    # An optional package, whose presence `bind` has checked. msgpack checks lengths in the data
    # against the bytes that follow.
    return import_module("msgpack").unpackb(data, raw=raw, list_hook=count, object_hook=count)


@dataclass(frozen=True, slots=True)
class BoundObjects:
    spec: ChunkSpec
    codec: Any
    members: dict[str, Any]
    is_memory_layout = False

    @property
    def encoded(self) -> SizeBound:
        if self.members["id"] == "categorize":
            size = np.dtype(self.members.get("astype", "u1")).itemsize
            return SizeBound(self.spec.elements * size, exact=True)
        return SizeBound(LARGEST_CHUNK, exact=False)

    def decode(self, data: Buffer) -> Chunk:
        self.encoded.check(len(data))
        try:
            values = self._values(data)
        except (ValueError, TypeError, KeyError, IndexError, RecursionError, SystemError) as error:
            raise DecodeError(f"{self.members['id']}: {reason_of(error)}") from error
        if len(values) != self.spec.elements:
            raise DecodeError(f"has {len(values)} elements, expected {self.spec.elements}")
        chunk = np.empty(self.spec.elements, object)
        for position, value in enumerate(values):
            chunk[position] = value
        return chunk.reshape(self.spec.shape)

    def _values(self, data: Buffer) -> list[Any]:
        match self.members["id"]:
            case "categorize":
                return self.codec.decode(np.frombuffer(data, np.uint8)).tolist()  # type: ignore[no-any-return]
            case "vlen-array":
                if int.from_bytes(data[:4], "little") != self.spec.elements:
                    raise ValueError("has another number of elements than the chunk")
                return [item.tolist() for item in self.codec.decode(data)]
            case "json2" | "json":
                text = bytes(data).decode(self.members.get("encoding", "utf-8"))
                items = bounds.load_json(
                    text.encode("utf-8", "surrogatepass"),
                    bounds.LARGEST_OBJECTS,
                    strict=self.members.get("strict", True),
                )
            case _:
                items = _unpacked(bytes(data), raw=bool(self.members.get("raw", False)))
        return self._flat(items)

    def _flat(self, items: Any) -> list[Any]:
        """Flatten nested lists, which a dtype follows, and in current forms their shape."""
        if not isinstance(items, list) or len(items) < 2:
            raise ValueError("is not a list with a dtype and a shape")
        if self.members["id"] not in _LEGACY:
            values, shape = items[:-2], bounds.check_claimed_shape(items[-1], self.spec.elements)
        elif isinstance(items[-1], str):
            values, shape = items[:-1], self.spec.shape
        else:
            raise ValueError("is not a list with a dtype")
        for length in shape[1:]:
            if not all(isinstance(part, list) and len(part) == length for part in values):
                raise ValueError(f"is not nested as the shape {shape}")
            values = [item for part in values for item in part]
        return values

    def encode(self, chunk: Chunk) -> Buffer:
        if self.members["id"] == "vlen-array":
            arrays = np.empty(chunk.size, object)
            for position, value in enumerate(chunk.reshape(-1)):
                arrays[position] = np.asarray(value, self.codec.dtype)
            chunk = arrays.reshape(chunk.shape)
        if self.members["id"] in _LEGACY:
            items = [*chunk.tolist(), chunk.dtype.str]
            if self.members["id"] == "json":
                return json.dumps(items).encode(self.members.get("encoding", "utf-8"))
            return import_module("msgpack").packb(items)  # type: ignore[no-any-return]
        encoded = self.codec.encode(np.ascontiguousarray(chunk))
        return encoded.tobytes() if isinstance(encoded, np.ndarray) else encoded
