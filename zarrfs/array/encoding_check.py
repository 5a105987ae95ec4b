"""Whether the codecs of an array can encode. Some can only decode, or so in their configuration."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from zarrfs.errors import reason_of
from zarrfs.format.chunk_grid import Shape
from zarrfs.format.chunk_layout import ChunkLayout, ShardLevel
from zarrfs.format.codec import Chunk, ChunkSpec, SizeBound
from zarrfs.format.pipeline import bind_bytes, encode_bytes

# Bytes of a chunk that is encoded as it is. A larger one takes too long for an open of a file.
_WHOLE = 1 << 20
# Bytes that are encoded for a shard: a multiple of 1 to 16.
_SHARD = 720_720
_REASON = "its codecs cannot encode"


class EncodingCheck:
    """Made once for an array, when a program first opens a file of it for writing.

    The permissions of files do not show it. To encode a chunk of every array that a program lists
    would take too long; and once they are known to be read-only, an owner who is not root would get
    EACCES at an open, in place of the EROFS of the first one.

    checked : whether it is made; if not, `check` makes it.
    reason : why the array cannot be written to; None if it can.
    """

    def __init__(self, layout: ChunkLayout) -> None:
        self._layout = layout
        self.checked = False
        self.reason: str | None = None

    def check(self) -> None:
        self.reason = why_not_encoded(self._layout)
        self.checked = True


def why_not_encoded(layout: ChunkLayout) -> str | None:
    """Why no chunk or shard of an array can be encoded; None if some can, or nobody can tell.

    Only a small chunk is encoded, and nothing is stored.
    """
    try:
        reason = _of_chunks(layout)
        for level in layout.levels if reason is None else ():
            reason = reason or _of_shards(level)
    except MemoryError:
        return None
    return reason


def _of_chunks(layout: ChunkLayout) -> str | None:
    spec = layout.spec(layout.read.largest_chunk)
    if not spec.elements:
        return None
    small = spec.nbytes <= _WHOLE
    if not small:
        spec = layout.spec(_reduced(spec.shape, _WHOLE // spec.dtype.itemsize))
    try:
        codec = layout.chunk_codec(spec.shape) if small else layout.pipeline.bind(spec)
    except Exception:  # noqa: BLE001 - a codec of another package, for chunks of that shape only
        return None
    reason = None
    for chunk in _samples(spec):
        try:
            codec.encode(chunk)
        except MemoryError:
            raise
        except Exception as error:  # noqa: BLE001 - a codec of another package may raise any
            # A codec may refuse some values and take others.
            reason = reason or f"{_REASON}: {reason_of(error)}"
        else:
            return None
    return reason


def _of_shards(level: ShardLevel) -> str | None:
    """The codecs of the index, and those around the shard."""
    index = level.index_codec(level.inner_shape)
    try:
        data = bytes(index.codec.encode(np.zeros((*index.counts, 2), np.uint64)))
        # Codecs such as ``shuffle`` need whole elements, of any usual size.
        data += bytes(-len(data) % _SHARD) if level.around else b""
        around, _ = bind_bytes(level.around, SizeBound(len(data), exact=True))
        encode_bytes(around, data)
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001 - as above
        return f"{_REASON}: {reason_of(error)}"
    return None


def _samples(spec: ChunkSpec) -> Iterator[Chunk]:
    yield spec.filled()
    yield np.zeros(spec.shape, spec.dtype)
    if spec.dtype.kind in "biufc":
        yield np.ones(spec.shape, spec.dtype)


def _reduced(shape: Shape, most: int) -> Shape:
    """A shape of at most so many elements whose lengths are powers of two.

    Codecs that need a whole number of units, such as ``shuffle``, then have one.
    """
    lengths = [1 << (length.bit_length() - 1) for length in shape]
    while np.prod(lengths, dtype=object) > max(1, most):
        longest = max(range(len(lengths)), key=lengths.__getitem__)
        lengths[longest] //= 2
    return tuple(lengths)
