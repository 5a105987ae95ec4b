"""How the chunks of an array lie in stored objects: grids, shards in shards, codecs, and keys.

The layout is derived from the codec pipeline. It says which are the *read chunks*, the smallest
chunks that can be decoded on their own, and how to reach each of them in a stored object.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import floordiv, mod
from typing import Any, ClassVar, NamedTuple, Protocol

from zarrfs.format.chunk_grid import ChunkGrid, Index, Shape
from zarrfs.format.codec import BoundBytesBytes, Buffer, BytesBytesCodec, ChunkSpec, SizeBound
from zarrfs.format.codecs.sharding import ShardingCodec
from zarrfs.format.data_type import DataType
from zarrfs.format.pipeline import ChunkCodec, CodecPipeline, bind_bytes, decode_bytes, verifies
from zarrfs.format.shard_index import IndexCodec
from zarrfs.format.unserved import UnservedError, name_and_configuration


class ShardLevel(NamedTuple):
    """One level of sharding.

    axis_order : axis ``a`` of the shard's own index is axis ``axis_order[a]`` of the array.
    inner_shape : shape of the inner chunks, in the array's axis order.
    around : bytes -> bytes codecs applied to the whole shard. If there are any, a reader must
        read the whole shard before it can use the shard index.
    """

    sharding: ShardingCodec
    axis_order: tuple[int, ...]
    inner_shape: Shape
    around: tuple[BytesBytesCodec, ...]

    def index_codec(self, shard_shape: Shape) -> IndexCodec:
        """The index of a shard of ``shard_shape`` (in the array's axis order)."""
        return _bind_index(self, shard_shape)

    def entry(self, index: Index) -> Index:
        """Position of the inner chunk ``index`` (array's axis order) in the shard index."""
        return tuple([index[axis] for axis in self.axis_order])

    def entries(self, indices: Sequence[Index]) -> Sequence[Index]:
        """As `entry`, for several inner chunks."""
        if self.axis_order == tuple(range(len(self.axis_order))):
            return indices
        return list(map(self.entry, indices))


class Wrapping(NamedTuple):
    """The codecs around the shards of one level.

    encoded, decoded : the most bytes that a shard may have with and without them; None if there are
        none, so that the shard need not be read whole.
    """

    codecs: tuple[BoundBytesBytes, ...]
    encoded: int | None
    decoded: int | None

    @property
    def cost(self) -> int:
        """The most bytes of memory that undoing the codecs takes."""
        return (self.encoded or 0) + (self.decoded or 0)

    def undo(self, data: Buffer) -> memoryview:
        """The bare shard. Raises DecodeError."""
        return memoryview(decode_bytes(self.codecs, data))


@lru_cache(maxsize=256)
def _bind_index(level: ShardLevel, shard_shape: Shape) -> IndexCodec:
    return level.sharding.bind_index(tuple(shard_shape[axis] for axis in level.axis_order))


class ChunkLayout(NamedTuple):
    """Grids and codecs of an array, ready for reading.

    stored : the grid of stored objects (of shards, if the array is sharded).
    read : the grid of read chunks, equal to ``stored`` if the array is not sharded.
    levels : the levels of sharding between the two grids, outermost first.
    pipeline : decodes one read chunk to the array's axis order.
    members : read chunks along each axis of a stored object; None if that varies.
    """

    stored: ChunkGrid
    read: ChunkGrid
    levels: tuple[ShardLevel, ...]
    pipeline: CodecPipeline
    data_type: DataType
    fill: bytes
    members: Shape | None

    def resized(self, shape: Shape) -> ChunkLayout:
        """The layout for an array of another shape. Raises ValueError beyond the grid's reach."""
        stored = self.stored.resized(shape)
        read = self.read.resized(shape) if self.levels else stored
        return self._replace(stored=stored, read=read)

    @property
    def sharded(self) -> bool:
        return bool(self.levels)

    def spec(self, shape: Shape) -> ChunkSpec:
        return ChunkSpec(shape, self.data_type, self.fill)

    def chunk_codec(self, shape: Shape) -> ChunkCodec:
        """The codec of read chunks of ``shape``."""
        return _bind_pipeline(self.pipeline, self.spec(shape))

    def verifies(self, stored_shape: Shape) -> bool:
        """Whether each read chunk in a stored object, or the whole object, has a checksum.

        stored_shape : shape of the decoded object.
        """
        inner = self.levels[-1].inner_shape if self.levels else stored_shape
        return self.chunk_codec(inner).verifies or any(
            verifies(wrapping.codecs) for wrapping in self.wrappings(stored_shape)
        )

    def wrappings(self, shape: Shape, largest: int = sys.maxsize) -> tuple[Wrapping, ...]:
        """The wrapping of each level of a shard of ``shape``, outermost first.

        largest : the most bytes to allow. The legal size of a shard is far above any real one, and
            only a hostile shard would use it.
        """
        inner = self.levels[-1].inner_shape if self.levels else shape
        return _bind_around(self.levels, self.chunk_codec(inner).encoded, shape, largest)

    def stored_index(self, index: Index) -> Index:
        """The stored object that holds the read chunk ``index``."""
        if not self.levels:
            return index
        if self.members is not None:
            return tuple(map(floordiv, index, self.members))
        origin = self.read.origin(index)
        return tuple(a.chunk_of(o) for a, o in zip(self.stored.axes, origin, strict=True))

    def locate(self, index: Index) -> tuple[Index, Index]:
        """The shard that contains a read chunk, and the chunk's index within it."""
        if self.members is not None:
            return tuple(map(floordiv, index, self.members)), tuple(map(mod, index, self.members))
        stored = self.stored_index(index)
        origin, leaf = self.stored.origin(stored), self.levels[-1].inner_shape
        return stored, tuple(i - o // n for i, o, n in zip(index, origin, leaf, strict=True))

    def count_in(self, stored: Index) -> int:
        """How many read chunks of a stored object contain a part of the array."""
        if not self.levels:
            return 1
        valid, leaf = self.stored.valid_shape(stored), self.levels[-1].inner_shape
        return math.prod([-(-v // n) for v, n in zip(valid, leaf, strict=True)])


@lru_cache(maxsize=1024)
def _bind_pipeline(pipeline: CodecPipeline, spec: ChunkSpec) -> ChunkCodec:
    return pipeline.bind(spec)


# Not by layout: that would keep the grids of arrays that are gone.
@lru_cache(maxsize=256)
def _bind_around(
    levels: tuple[ShardLevel, ...], size: SizeBound, shape: Shape, largest: int
) -> tuple[Wrapping, ...]:
    """As `ChunkLayout.wrappings`, around encoded chunks of ``size`` bytes."""
    shapes = [shape, *(level.inner_shape for level in levels)]
    bound = []
    for level, outer in zip(reversed(levels), reversed(shapes[:-1]), strict=True):
        size = level.index_codec(outer).shard_bound(size)
        if level.around:
            decoded = min(size.maximum, largest)
            codecs, size = bind_bytes(level.around, SizeBound(decoded, exact=False))
            bound.append(Wrapping(codecs, min(size.maximum, largest), decoded))
        else:
            bound.append(Wrapping((), None, None))
    return tuple(reversed(bound))


def plan_layout(
    grid: ChunkGrid, pipeline: CodecPipeline, data_type: DataType, fill: bytes
) -> ChunkLayout:
    """Find the read chunks of an array with this ``pipeline``.

    The inner chunks of a shard are read chunks if every array -> array codec before the sharding
    codec keeps parts of a chunk separate. Otherwise the whole shard is one read chunk.

    Raises ValueError if the codecs cannot work on the grid's chunks.
    """
    rank = len(grid.axes)
    order = tuple(range(rank))
    levels: list[ShardLevel] = []
    array_array = pipeline.array_array
    while isinstance(pipeline.array_bytes, ShardingCodec):
        inner_order = _axis_order(pipeline, order, rank)
        if inner_order is None:
            break
        order = inner_order
        sharding = pipeline.array_bytes
        inner_shape = [0] * rank
        if len(sharding.chunk_shape) != rank:
            raise ValueError(f"inner chunks of {list(sharding.chunk_shape)} have no {rank} axes")
        for axis, length in zip(order, sharding.chunk_shape, strict=True):
            inner_shape[axis] = length
        levels.append(ShardLevel(sharding, order, tuple(inner_shape), pipeline.bytes_bytes))
        pipeline = sharding.codecs
        array_array += pipeline.array_array
    if levels:
        _check_shards(grid, levels)
        read = ChunkGrid.regular(grid.shape, levels[-1].inner_shape)
        pipeline = CodecPipeline(array_array, pipeline.array_bytes, pipeline.bytes_bytes)
    else:
        read = grid
    members = None
    if grid.regular_shape is not None and read.regular_shape is not None:
        sides = zip(grid.regular_shape, read.regular_shape, strict=True)
        members = tuple(outer // inner for outer, inner in sides)
    layout = ChunkLayout(grid, read, tuple(levels), pipeline, data_type, fill, members)
    layout.chunk_codec(read.largest_chunk)
    return layout


def _axis_order(
    pipeline: CodecPipeline, order: tuple[int, ...], rank: int
) -> tuple[int, ...] | None:
    for codec in pipeline.array_array:
        step = codec.axis_order(rank)
        if step is None:
            return None
        order = tuple(order[axis] for axis in step)
    return order


def _check_shards(grid: ChunkGrid, levels: Sequence[ShardLevel]) -> None:
    """Bind every index once, so that an index that does not fit is detected here."""
    for axis, (outer, inner) in enumerate(zip(grid.axes, levels[0].inner_shape, strict=True)):
        if any(length % inner for length in outer.lengths):
            raise ValueError(f"inner chunks of {inner} do not divide the shards of axis {axis}")
    shape = grid.largest_chunk
    for level in levels:
        level.index_codec(shape)
        shape = level.inner_shape


# No array has a chunk count of more digits.
_MOST_DIGITS = 20


class ChunkKeyEncoding(Protocol):
    """Names the stored object of each chunk."""

    def key(self, index: Index) -> str:
        """The key of chunk ``index``, relative to the array."""
        ...

    def index(self, key: str, rank: int) -> Index | None:
        """The chunk that has this key, in an array of ``rank`` axes; None if no chunk has it."""
        ...


def _index(encoding: ChunkKeyEncoding, key: str, texts: Sequence[str], rank: int) -> Index | None:
    """The coordinates in ``texts``, if their key is exactly ``key``; else None."""
    if len(texts) != rank or not all(text.isascii() and text.isdigit() for text in texts):
        return None
    if any(len(text) > _MOST_DIGITS for text in texts):
        return None
    index = tuple(map(int, texts))
    return index if encoding.key(index) == key else None


@dataclass(frozen=True, slots=True)
class V2Keys:
    """``1.2`` or ``1/2``; ``0`` for a 0-dimensional array."""

    separator: str = "."
    first: ClassVar[Sequence[str]] = ()

    def __post_init__(self) -> None:
        if self.separator not in ("/", "."):
            raise ValueError(f"separator is {self.separator!r}")

    def key(self, index: Index) -> str:
        return self.separator.join([*self.first, *map(str, index)]) or "0"

    def index(self, key: str, rank: int) -> Index | None:
        texts = key.split(self.separator)[len(self.first) :] if rank else ()
        return _index(self, key, texts, rank)


@dataclass(frozen=True, slots=True)
class DefaultKeys(V2Keys):
    """``c/1/2`` or ``c.1.2``; ``c`` for a 0-dimensional array."""

    separator: str = "/"
    first: ClassVar[Sequence[str]] = ("c",)


@dataclass(frozen=True, slots=True)
class SuffixKeys:
    """The key of another encoding, followed by a file name suffix: ``c/1/2.tiff``."""

    base: ChunkKeyEncoding
    suffix: str

    def __post_init__(self) -> None:
        if not isinstance(self.suffix, str) or "/" in self.suffix or "\0" in self.suffix:
            raise ValueError(f"suffix is {self.suffix!r}")

    def key(self, index: Index) -> str:
        return self.base.key(index) + self.suffix

    def index(self, key: str, rank: int) -> Index | None:
        if not key.endswith(self.suffix):
            return None
        return self.base.index(key.removesuffix(self.suffix), rank)


@dataclass(frozen=True, slots=True)
class FanoutKeys:
    """Coordinates in groups of digits, after the number of further groups: ``c/1/001/234``.

    No directory has more than ``max_children`` entries, a power of ten.
    """

    max_children: int = 1000

    def __post_init__(self) -> None:
        limit = self.max_children
        if isinstance(limit, bool) or not isinstance(limit, int) or limit < 100:
            raise ValueError(f"max_children is {limit!r}, must be at least 100")

    def key(self, index: Index) -> str:
        parts = ["c"]
        # A limit that is no power of ten counts as the next lower power.
        digits = len(str(self.max_children)) - 1
        for coordinate in index:
            text = str(coordinate)
            text = text.zfill(-(-len(text) // digits) * digits)
            groups = [text[i : i + digits] for i in range(0, len(text), digits)]
            parts += [str(len(groups) - 1), *groups]
        return "/".join(parts)

    def index(self, key: str, rank: int) -> Index | None:
        parts = key.split("/")[1:]
        texts = []
        while parts:
            if not (parts[0].isascii() and parts[0].isdigit()) or len(parts[0]) > _MOST_DIGITS:
                return None
            groups = int(parts[0]) + 1
            texts.append("".join(parts[1 : 1 + groups]).lstrip("0") or "0")
            parts = parts[1 + groups :]
        return _index(self, key, texts, rank)


def _suffix(configuration: Mapping[str, Any]) -> ChunkKeyEncoding:
    if not {"suffix"} <= set(configuration) <= {"suffix", "base-encoding"}:
        raise ValueError("expected suffix and base-encoding")
    base = configuration.get("base-encoding", "default")
    return SuffixKeys(parse_chunk_keys(base), configuration["suffix"])


def _default_suffix(configuration: Mapping[str, Any]) -> ChunkKeyEncoding:
    if not {"suffix"} <= set(configuration) <= {"suffix", "separator"}:
        raise ValueError("expected suffix and separator")
    base = DefaultKeys(configuration.get("separator", "/"))
    return SuffixKeys(base, configuration["suffix"])


CHUNK_KEY_ENCODINGS: dict[str, Callable[[Mapping[str, Any]], ChunkKeyEncoding]] = {
    "default": lambda configuration: DefaultKeys(**configuration),
    "v2": lambda configuration: V2Keys(**configuration),
    "suffix": _suffix,
    "fanout": lambda configuration: FanoutKeys(**configuration),
    "zarrs.default_suffix": _default_suffix,
}
"""Encodings by name; each is called with the members of its configuration."""


def parse_chunk_keys(value: Any) -> ChunkKeyEncoding:
    """The encoding that metadata give as a name, or as a name and a configuration.

    Raises UnservedError for an unknown encoding, ValueError for a malformed one.
    """
    name, configuration = name_and_configuration(value, "chunk key encoding")
    if (make := CHUNK_KEY_ENCODINGS.get(name)) is None:
        raise UnservedError(f"unknown chunk key encoding {name!r}")
    try:
        return make(configuration)
    except TypeError as error:
        raise ValueError(f"chunk key encoding {name!r}: {error}") from error
