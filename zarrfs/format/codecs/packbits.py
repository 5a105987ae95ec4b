"""``packbits``: the significant bits of all elements, without gaps.

https://github.com/zarr-developers/zarr-extensions/tree/main/codecs/packbits
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from zarrfs.errors import DecodeError
from zarrfs.format.codec import Buffer, Chunk, ChunkSpec, SizeBound

# Elements packed at a time: each bit takes a byte of memory meanwhile. A multiple of 8, so that
# every part but the last ends with a whole byte.
_AT_ONCE = 1 << 16


@dataclass(frozen=True, slots=True)
class PackbitsCodec:
    padding_encoding: Literal["none", "first_byte", "last_byte"] = "none"
    first_bit: int | None = None
    last_bit: int | None = None

    def __post_init__(self) -> None:
        if self.padding_encoding not in ("none", "first_byte", "last_byte"):
            raise ValueError(f"padding_encoding is {self.padding_encoding!r}")
        for bit in (self.first_bit, self.last_bit):
            if bit is not None and (isinstance(bit, bool) or not isinstance(bit, int) or bit < 0):
                raise ValueError(f"{bit!r} is not an index of a bit")

    def bind(self, spec: ChunkSpec) -> BoundPackbits:
        dtype = spec.dtype
        is_pair = dtype.kind == "c" or dtype.names == ("real", "imag")
        if not spec.data_type.fixed_size or (dtype.names is not None and not is_pair):
            raise ValueError(f"packbits cannot pack {spec.data_type.name}")
        size = dtype.itemsize // (1 + is_pair)
        if size not in (1, 2, 4, 8):
            raise ValueError(f"packbits cannot pack {spec.data_type.name}")
        total = 1 if dtype.kind == "b" else spec.data_type.bits or 8 * size
        first = self.first_bit or 0
        last = total - 1 if self.last_bit is None else self.last_bit
        if not first <= last < total:
            raise ValueError(f"bits {first} to {last} are not among the {total} of an element")
        word: np.dtype[Any] = np.dtype(f"<{'i' if dtype.kind == 'i' else 'u'}{size}")
        return BoundPackbits(spec, self.padding_encoding, word, spec.elements * (1 + is_pair),
                             first, last - first + 1)  # fmt: skip


@dataclass(frozen=True, slots=True)
class BoundPackbits:
    """``word`` is an integer of the size of a component, ``count`` the number of components."""

    spec: ChunkSpec
    padding_encoding: str
    word: np.dtype[Any]
    count: int
    first: int
    bits: int
    is_memory_layout = False

    @property
    def _packed(self) -> int:
        return -(-self.count * self.bits // 8)

    @property
    def encoded(self) -> SizeBound:
        return SizeBound(self._packed + (self.padding_encoding != "none"), exact=True)

    def decode(self, data: Buffer) -> Chunk:
        self.encoded.check(len(data))
        view = memoryview(data)
        if self.padding_encoding != "none":
            at_start = self.padding_encoding == "first_byte"
            padding = view[0 if at_start else -1]
            if padding != 8 * self._packed - self.count * self.bits:
                raise DecodeError(f"declares {padding} bits of padding")
            view = view[1:] if at_start else view[:-1]
        packed = np.frombuffer(view, np.uint8)
        words = np.empty(self.count, self.word)
        for start in range(0, self.count, _AT_ONCE):
            part = words[start : start + _AT_ONCE]
            self._unpack(packed[start * self.bits // 8 :], part)
        chunk = words.view(self.spec.dtype).reshape(self.spec.shape)
        canonical = self.spec.data_type.canonical
        return chunk if canonical is None else canonical(chunk)

    def _unpack(self, packed: Chunk, words: Chunk) -> None:
        flat = np.unpackbits(packed, count=len(words) * self.bits, bitorder="little")
        bits = flat.reshape(len(words), self.bits)
        unsigned = np.dtype(f"<u{self.word.itemsize}")
        raw = np.zeros((len(words), 8 * self.word.itemsize), np.uint8)
        raw[:, self.first : self.first + self.bits] = bits
        if self.word.kind == "i":
            raw[:, self.first + self.bits :] = bits[:, -1:]
        words[...] = np.packbits(raw, bitorder="little").view(unsigned).view(self.word)

    def encode(self, chunk: Chunk) -> Buffer:
        flat = np.ascontiguousarray(chunk, self.spec.dtype).reshape(-1).view(np.uint8)
        words = flat.reshape(self.count, self.word.itemsize)
        parts = []
        for start in range(0, self.count, _AT_ONCE):
            raw = np.unpackbits(words[start : start + _AT_ONCE], axis=1, bitorder="little")
            kept = raw[:, self.first : self.first + self.bits]
            parts.append(np.packbits(kept, bitorder="little").tobytes())
        padding = bytes([8 * self._packed - self.count * self.bits])
        if self.padding_encoding == "first_byte":
            parts.insert(0, padding)
        elif self.padding_encoding == "last_byte":
            parts.append(padding)
        return b"".join(parts)
