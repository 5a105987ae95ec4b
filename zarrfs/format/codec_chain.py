"""Codec chains of new arrays: omitted parts are completed as TensorStore completes them.

https://google.github.io/tensorstore/driver/zarr3/index.html. The metadata contain the defaults
explicitly, so that every reader uses the same ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from zarrfs.counted import did_you_mean
from zarrfs.format.chunk_grid import Shape
from zarrfs.format.codec import ArrayArrayCodec, ChunkSpec
from zarrfs.format.data_type import DataType
from zarrfs.format.data_types.core_types import CORE_DATA_TYPES
from zarrfs.format.metadata.pipelines import parse_pipeline
from zarrfs.format.registry import CODECS, find_codec
from zarrfs.format.unserved import UnservedError, name_and_configuration

SHARDING = "sharding_indexed"

Codec = dict[str, Any]
"""A codec as in v3 metadata: ``name``, and ``configuration`` if it has one."""

_INDEX_CODECS = ("bytes", "crc32c")
_DEFAULTS: Mapping[str, Mapping[str, Any]] = {
    "gzip": {"level": 6},
    "zstd": {"level": 3, "checksum": False},
    "blosc": {"cname": "lz4", "clevel": 5, "blocksize": 0},
}
_SERIALISERS = {"string": "vlen-utf8", "bytes": "vlen-bytes"}


@dataclass(frozen=True, slots=True)
class ChainTarget:
    """The chunks that a chain encodes.

    fill : bytes of one fill element.
    read_shape : shape of the chunks that are decoded on their own.
    sharded : whether the chain must combine these chunks into shards.
    endian : byte order of elements if the chain does not give one.
    inner_order : axes from the slowest to the fastest within a read chunk; None: any order.
    """

    data_type: DataType
    fill: bytes
    read_shape: Shape
    sharded: bool = False
    endian: str = "little"
    inner_order: Sequence[int] | None = None


def complete_chain(codecs: Sequence[Any], target: ChainTarget) -> list[Codec]:
    """The whole chain, in encoding order.

    codecs : names, or objects as in metadata. The array -> bytes codec, members of
        configurations and the sharding codec may be missing. If the sharding codec is missing
        and needed, ``codecs`` becomes the chain of the inner chunks.

    Raises ValueError, and UnservedError for an unknown codec.
    """
    chain = [_object(codec) for codec in codecs]
    kinds = [_kind(codec["name"]) for codec in chain]
    if target.sharded and all(codec["name"] != SHARDING for codec in chain):
        chain = [{"name": SHARDING, "configuration": {"codecs": chain}}]
        kinds = ["array -> bytes"]
    count = 0
    while count < len(chain) and kinds[count] == "array -> array":
        count += 1
    before, rest = chain[:count], chain[count:]
    if "array -> array" in kinds[count:]:
        raise ValueError("codecs must go from array to array, then to bytes, then bytes to bytes")
    if "array -> bytes" not in kinds:
        rest.insert(0, {"name": _SERIALISERS.get(target.data_type.name, "bytes")})
    rank = len(target.read_shape)
    before = [_transpose(codec, rank) for codec in before]
    order = target.inner_order
    moves = [codec.axis_order(rank) for codec in _configured(before)] if order is not None else []
    if None in moves and all(codec["name"] != "transpose" for codec in before):
        # Such a codec encodes the elements as they follow each other.
        before = [*_reordering(order), *before]
        target = replace(target, inner_order=None)
    inner = _behind(before, target)
    if rest[0]["name"] == SHARDING:
        rest[0] = _sharding(rest[0], inner)
    else:
        before += _reordering(inner.inner_order)
        rest = _serialised(rest, inner)
    return before + rest


def inner_chunk_shape(codecs: Sequence[Any], rank: int) -> Shape | None:
    """Shape of inner chunks in the array's axis order, if the chain gives one; else None.

    Raises ValueError for a malformed shape.
    """
    order = tuple(range(rank))
    for codec in map(_object, codecs):
        if codec["name"] == SHARDING:
            shape = codec.get("configuration", {}).get("chunk_shape")
            if shape is None:
                return None
            if not isinstance(shape, list) or len(shape) != rank:
                raise ValueError(f"{shape!r} is not a shape of inner chunks of {rank} axes")
            lengths = dict(zip(order, shape, strict=True))
            return tuple(lengths[axis] for axis in range(rank))
        if _kind(codec["name"]) == "array -> array":
            step = _configured([_transpose(codec, rank)])[0].axis_order(rank)
            if step is None:
                return None
            order = tuple(order[axis] for axis in step)
    return None


def _object(codec: Any) -> Codec:
    return _named(*name_and_configuration(codec, "codec"))


def _named(name: str, configuration: Mapping[str, Any]) -> Codec:
    # zarr-python refuses a codec of numcodecs without a configuration, even an empty one.
    if configuration or name.startswith("numcodecs."):
        return {"name": name, "configuration": dict(configuration)}
    return {"name": name}


def _kind(name: str) -> str:
    if (found := find_codec(name)) is None:
        raise UnservedError(f"unknown codec {name!r}{did_you_mean(name, CODECS, 2)}")
    return found[0]


def _transpose(codec: Codec, rank: int) -> Codec:
    """Replace ``"C"`` and ``"F"``, which some readers do not know, by a list of axes."""
    order = codec.get("configuration", {}).get("order")
    if codec["name"] != "transpose" or order not in ("C", "F"):
        return codec
    axes = list(range(rank))
    return {"name": "transpose", "configuration": {"order": axes if order == "C" else axes[::-1]}}


def _reordering(order: Sequence[int] | None) -> list[Codec]:
    """The codec behind which elements lie in this order of axes; none if they do without it."""
    if order is None or list(order) == list(range(len(order))):
        return []
    return [{"name": "transpose", "configuration": {"order": list(order)}}]


def _configured(codecs: Sequence[Codec]) -> tuple[ArrayArrayCodec, ...]:
    return parse_pipeline([*codecs, "bytes"]).array_array


def _behind(codecs: Sequence[Codec], target: ChainTarget) -> ChainTarget:
    """The chunks that the codec after these array -> array codecs encodes."""
    spec = ChunkSpec(target.read_shape, target.data_type, target.fill)
    order = target.inner_order
    for codec in _configured(codecs):
        step = codec.axis_order(len(spec.shape))
        if order is not None:
            if step is None:
                raise ValueError("these codecs do not keep an order of the elements")
            order = [step.index(axis) for axis in order]
        spec = codec.bind(spec).encoded
    return replace(
        target,
        data_type=spec.data_type,
        fill=spec.fill,
        read_shape=spec.shape,
        inner_order=order,
        sharded=False,
    )


def _sharding(codec: Codec, target: ChainTarget) -> Codec:
    given = dict(codec.get("configuration", {}))
    if (shape := given.setdefault("chunk_shape", list(target.read_shape))) is not None:
        target = replace(target, read_shape=tuple(shape))
    for member in ("codecs", "index_codecs"):
        if not isinstance(given.get(member, []), list):
            raise ValueError(f"{SHARDING}: {member} is not a list")
    given["codecs"] = complete_chain(given.get("codecs", []), target)
    index = replace(target, data_type=CORE_DATA_TYPES["uint64"], inner_order=None, endian="little")
    index = replace(index, read_shape=(*target.read_shape, 2), fill=b"\xff" * 8)
    given["index_codecs"] = complete_chain(given.get("index_codecs", _INDEX_CODECS), index)
    return {"name": SHARDING, "configuration": given}


def _serialised(codecs: list[Codec], target: ChainTarget) -> list[Codec]:
    """The array -> bytes codec and the codecs behind it.

    Blosc shuffles in units of the item size as long as the elements are in their places.
    """
    data_type = target.data_type
    item_size = data_type.item_size if codecs[0]["name"] == "bytes" else None
    done = []
    for codec in codecs:
        given = dict(codec.get("configuration", {}))
        if codec["name"] == "bytes" and _has_byte_order(data_type):
            given.setdefault("endian", target.endian)
        for member, value in _DEFAULTS.get(codec["name"], {}).items():
            given.setdefault(member, value)
        if codec["name"] == "blosc":
            _shuffle(given, item_size)
        if codec["name"] != "bytes":
            item_size = None
        done.append(_named(codec["name"], given))
    return done


def _has_byte_order(data_type: DataType) -> bool:
    return data_type.item_size > 1 and data_type.stored_dtype(big_endian=True) != data_type.dtype


def _shuffle(given: dict[str, Any], item_size: int | None) -> None:
    """Set the unit that Blosc shuffles: bytes, bits for elements of one byte, or none."""
    typesize = given.get("typesize", item_size)
    if typesize is None or typesize > 255:
        given.setdefault("shuffle", "noshuffle")
    given.setdefault("shuffle", "bitshuffle" if typesize == 1 else "shuffle")
    if given["shuffle"] != "noshuffle":
        given.setdefault("typesize", typesize)
