"""The form of a copy: the metadata of the new array, from those of its source."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from zarrfs.errors import UsageError
from zarrfs.format.chunk_grid import Shape
from zarrfs.format.codec_chain import SHARDING
from zarrfs.format.making.array_template import template
from zarrfs.format.making.chunk_choice import ChunkConstraints
from zarrfs.format.making.new_array import FREE, NewArray
from zarrfs.format.metadata.documents import V2_DIMENSIONS
from zarrfs.format.metadata.members import plain
from zarrfs.format.metadata.node import ArrayMetadata
from zarrfs.format.metadata.older.v2_codecs import STRINGS
from zarrfs.format.registry import find_codec, parse_data_type
from zarrfs.format.text_forms import read_fill
from zarrfs.library.copying.casting import cast

_BLOSC_SHUFFLES = {0: "noshuffle", 1: "shuffle", 2: "bitshuffle"}
_TYPED = ("astype", "delta", "fixedscaleoffset", "quantize")
_TYPES = ("dtype", "astype", "encode_dtype", "decode_dtype")
_SAME_IN_BOTH = ("zstd", "gzip", "crc32c", "vlen-utf8", "vlen-bytes")


@dataclass(frozen=True, slots=True)
class CopyForm:
    """The properties in which a copy differs from its source; None: as there.

    chunks, shards : elements along each axis, as `ChunkConstraints` takes them; for arrays of as
        many axes only. ``chunks`` alone asks for no shards, and so do ``shards`` that are empty.
    codecs : as in `NewArray`, of the inner chunks if there are shards.
    like : an array whose chunks, shards, codecs, key encoding and version are taken.
    data_type, endian : as in `NewArray`.
    attributes : added to those of the array or group that is copied.
    """

    zarr_format: Literal[2, 3] | None = None
    chunks: Sequence[int] | None = None
    shards: Sequence[int] | None = None
    codecs: Sequence[Any] | None = None
    like: NewArray | None = None
    data_type: Any = None
    endian: str | None = None
    attributes: Mapping[str, Any] = field(default_factory=dict)

    def ranks(self) -> dict[str, int]:
        """How many axes the arrays have that an option is for, by its name."""
        like = None if self.like is None else self.like.shape
        given = {"chunks": self.chunks, "shards": self.shards or None, "like": like}
        return {name: len(value) for name, value in given.items() if value is not None}

    def version(self, source: int) -> Literal[2, 3]:
        """The version of Zarr of the copy of a node of version ``source``; 0: of no version."""
        like = None if self.like is None else self.like.zarr_format
        return self.zarr_format or like or (2 if source == 2 and not self.shards else 3)


def new_form(
    metadata: ArrayMetadata, attributes: Mapping[str, Any], form: CopyForm, shape: Shape
) -> NewArray:
    """The new array for a copy of a source, or of a region of it that has ``shape``.

    attributes : of the new array, but for the names of its axes.

    Raises UsageError, MetadataError and ValueError for a form that cannot be.
    """
    version = form.version(metadata.zarr_format)
    base = _as_it_is(metadata)
    rank = len(shape)
    if form.like is not None and (form.like.shape is None or len(form.like.shape) == rank):
        like = form.like
        if like.data_type is not None and (like.zarr_format or 3) == 2 and like.endian:
            base = replace(base, endian=like.endian)
        base = replace(
            base,
            zarr_format=like.zarr_format or 3,
            chunks=like.chunks,
            shards=like.shards,
            chunk_grid=like.chunk_grid,
            codecs=like.codecs,
            order=like.order,
            key_encoding=like.key_encoding,
        )
    if shape != metadata.shape and base.chunk_grid is not None:
        base = replace(base, chunk_grid=None, usual=True)
    if form.data_type is not None:
        base = _of_type(base, metadata, form.data_type, form.endian)
    base = _in_version(base, version, rank)
    base = _in_chunks(base, form, rank)
    names: Any = metadata.dimension_names or None
    if not rank and V2_DIMENSIONS in metadata.attributes:
        names = ()
    return replace(
        base,
        shape=shape,
        dimension_names=names,
        dimension_units=None,
        attributes={k: v for k, v in attributes.items() if k != V2_DIMENSIONS or names is None},
        usual=base.usual or base.codecs is None,
    )


def _as_it_is(metadata: ArrayMetadata) -> NewArray:
    """The form of the source, from metadata of any version, consolidated or not."""
    summary = plain(metadata.summary)
    shape = list(metadata.shape)
    if metadata.zarr_format == 3:
        return template({"zarr_format": 3, "shape": shape, **summary}, "zarr.json")
    chain = [
        {"id": codec["name"].removeprefix("numcodecs."), **codec["configuration"]}
        for codec in summary["codecs"]
    ]
    encoding = summary["chunk_key_encoding"].get("configuration", {})
    document = {
        "zarr_format": 2,
        "shape": shape,
        "chunks": summary["chunk_grid"]["configuration"]["chunk_shape"],
        "dtype": summary["dtype"],
        "fill_value": summary["fill_value"] if metadata.has_fill else None,
        "order": summary["order"],
        "filters": chain,
        "dimension_separator": encoding.get("separator", "."),
    }
    array = template(document, ".zarray")
    kind = metadata.layout.data_type.dtype
    if metadata.has_fill and (kind.kind == "S" or kind.names is not None):
        # As zarr-python writes it in Zarr 3.
        fill = base64.b64encode(metadata.layout.fill).decode()
        array = replace(array, fill_value=fill)
    return array


def _of_type(base: NewArray, metadata: ArrayMetadata, data_type: Any, endian: Any) -> NewArray:
    new = parse_data_type(data_type)
    layout = metadata.layout
    if not new.fixed_size or not layout.data_type.fixed_size:
        raise UsageError("a --dtype is for numbers, and not for elements of variable length")
    fill = None
    if metadata.has_fill and new.name != layout.data_type.name:
        element = layout.data_type.element(layout.fill).reshape(1)
        value = cast(element, new.dtype, "the fill value")[0]
        fill = read_fill(str(value).lower(), new)
    elif metadata.has_fill:
        fill = base.fill_value
    codecs = base.codecs
    if codecs is not None:
        codecs = [_without_item_size(codec) for codec in codecs]
    return replace(base, data_type=data_type, fill_value=fill, codecs=codecs, endian=endian)


def _without_item_size(codec: Any) -> Any:
    """Let it be chosen anew: shuffling depends on it, and so does the byte order."""
    match codec:
        case {"name": "bytes"}:
            return "bytes"
        case {"name": "blosc", "configuration": configuration}:
            kept = {k: v for k, v in configuration.items() if k != "typesize"}
            return {"name": "blosc", "configuration": kept}
        case {"name": name, "configuration": {"codecs": inner, **others}} if name == SHARDING:
            inner = [_without_item_size(each) for each in inner]
            return {"name": name, "configuration": {**others, "codecs": inner}}
    return codec


def _in_version(base: NewArray, version: Literal[2, 3], rank: int) -> NewArray:
    """The same in another version of Zarr."""
    if (base.zarr_format or 3) == version:
        return replace(base, zarr_format=version)
    codecs, order, fill = base.codecs, base.order, base.fill_value
    if version == 3:
        codecs = None if codecs is None else [_codec_of_v3(c) for c in codecs if _is_kept(c)]
    elif codecs is not None:
        codecs, order = _chain_of_v2(codecs, rank)
    chunks, usual = base.chunks, False
    if version == 2 and base.chunk_grid is not None:
        chunks, usual = FREE, True
    if version == 2:
        fill = _fill_of_v2(base)
    changed = replace(
        base,
        zarr_format=version,
        chunks=chunks,
        shards=base.shards if version == 3 else None,
        chunk_grid=base.chunk_grid if version == 3 else None,
        codecs=codecs,
        order=order,
        fill_value=fill,
        # Of OME-Zarr, which has no other in Zarr 2.
        key_encoding=None if version == 3 else {"name": "v2", "configuration": {"separator": "/"}},
        others={},
        usual=usual,
    )
    return _plain_filters(changed)


def _is_kept(codec: Any) -> bool:
    """Not the codec of strings, which their data type has by itself in Zarr 3."""
    return not (isinstance(codec, Mapping) and codec.get("id") in STRINGS)


def _codec_of_v3(codec: Any) -> Any:
    if not isinstance(codec, Mapping) or "id" not in codec:
        return codec
    name = codec["id"]
    given = {k: v for k, v in codec.items() if k != "id"}
    if name == "blosc":
        shuffle = given.get("shuffle", 1)
        # -1 is for Blosc to choose, by the item size.
        given["shuffle"] = _BLOSC_SHUFFLES.get(shuffle, "shuffle")
        if shuffle == -1:
            del given["shuffle"]
        return {"name": "blosc", "configuration": given}
    if name == "zstd":
        given.setdefault("checksum", False)
    if name in _SAME_IN_BOTH:
        return {"name": name, "configuration": given} if given else {"name": name}
    if find_codec(f"numcodecs.{name}") is None:
        raise ValueError(f"Zarr 3 has no codec {name}: choose others with --codecs")
    return {"name": f"numcodecs.{name}", "configuration": given}


def _plain_filters(base: NewArray) -> NewArray:
    """``base``, in little-endian order if it has filters that name the type of elements.

    In Zarr 2 such a filter interprets bytes, and in Zarr 3 values, which zarr-python 3.1 mistakes
    for bytes. Both read the same where all types have the byte order of the machine. It also mixes
    the axes of Zarr 3 where ``transpose`` follows ``fixedscaleoffset``, so they keep their order.
    """
    found = False
    codecs: list[Any] = []
    for codec in base.codecs or ():
        members: Mapping[str, Any] = codec if isinstance(codec, Mapping) else {}
        given: Mapping[str, Any] = members.get("configuration") or {}
        name = str(members.get("name")).removeprefix("numcodecs.")
        if name in _TYPED:
            found = True
            types = {m: v for m, v in given.items() if m in _TYPES and isinstance(v, str)}
            little = {m: np.dtype(v).newbyteorder("<").str for m, v in types.items()}
            codecs.append({**members, "configuration": {**given, **little}})
        else:
            codecs.append("bytes" if name == "bytes" else codec)
    if not found:
        return base
    order = None if base.zarr_format == 3 else base.order
    return replace(base, codecs=codecs, endian="little", order=order)


def _chain_of_v2(codecs: Sequence[Any], rank: int) -> tuple[list[Any], Sequence[int] | None]:
    """The codecs, and the order of the axes, of what a pipeline of v3 does.

    Zarr 2 has the orders C and F. Elements that lie in another one are stored in the order C.
    """
    chain: list[Any] = []
    orders: list[Any] = []
    pending = list(codecs)
    while pending:
        codec = pending.pop(0)
        match codec:
            case {"name": name, "configuration": {"codecs": inner}} if name == SHARDING:
                pending = [*inner, *pending]
            case {"name": "transpose", "configuration": {"order": axes}}:
                orders.append(axes)
            case {"name": "blosc", "configuration": given}:
                kept = {k: v for k, v in given.items() if k != "typesize"}
                chain.append({"name": "blosc", "configuration": kept})
            case _:
                chain.append(codec)
    backwards = range(rank)[::-1]
    return chain, backwards if orders in (["F"], [list(backwards)]) else None


def _fill_of_v2(base: NewArray) -> Any:
    """The fill value for Zarr 2, whose documents cannot say all bits of a NaN."""
    fill = base.fill_value
    if not isinstance(fill, str) or not fill.startswith("0x"):
        return fill
    data_type = parse_data_type(base.data_type)
    raw = data_type.fill_bytes(fill)
    value = data_type.element(raw)[()]
    for text in ("NaN", "Infinity", "-Infinity"):
        if data_type.fill_bytes(text) == raw:
            return text
    if not np.isnan(value):
        return float(value)
    raise ValueError(f"Zarr 2 has no fill value {fill}")


def _in_chunks(base: NewArray, form: CopyForm, rank: int) -> NewArray:
    """``base`` with the chunks, shards and codecs that ``form`` asks for."""
    chunks = form.chunks if form.chunks is not None and len(form.chunks) == rank else None
    shards = form.shards if form.shards and len(form.shards) == rank else None
    unsharded = form.shards is not None and not form.shards
    codecs = form.codecs
    if chunks is None and shards is None and not unsharded:
        return base if codecs is None else replace(base, codecs=codecs)
    if codecs is None:
        codecs = base.codecs
        if codecs is not None and (shards is None or chunks is not None):
            codecs = _without_shards(codecs, kept=0 if shards is None else 1)
    inner = base.chunks if chunks is None else ChunkConstraints(tuple(chunks))
    if base.chunk_grid is not None and chunks is None:
        raise UsageError("chunks of several shapes get no shards: give --chunks, too")
    return replace(
        base,
        chunks=inner,
        shards=None if shards is None else ChunkConstraints(tuple(shards)),
        chunk_grid=None,
        codecs=codecs,
        usual=True,
    )


def _without_shards(codecs: Sequence[Any], kept: int = 0) -> list[Any]:
    """The codecs with at most ``kept`` shards in each other, and the codecs of inner chunks."""
    found: list[Any] = []
    for codec in codecs:
        match codec:
            case {"name": name, "configuration": {"codecs": inner} as given} if name == SHARDING:
                inner = _without_shards(inner, kept - 1)
                shard = {**codec, "configuration": {**given, "codecs": inner}}
                found += [shard] if kept > 0 else inner
            case _:
                found.append(codec)
    return found
