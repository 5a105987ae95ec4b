"""One dataset of an HDF5 file as a Zarr array: references to its chunks, or boxes.

The chunks of most datasets lie in the file as a codec of Zarr reads them. All others are *boxes*,
which HDF5 itself reads when they are wanted; see `hdf5_boxes`.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from zarrfs.store.foreign import hdf5_boxes
from zarrfs.store.foreign.found import Shape, array_document, chunk_key, cut, inlined, pieces
from zarrfs.store.foreign.hdf5_types import (
    NotServedError,
    attributes,
    data_type,
    decoded,
    fill_value,
    is_text,
    packed,
)

Names = dict[tuple[int, int], str]

# Elements of text in a chunk, and in a dataset that is read at once.
_TEXTS = 4096
_INLINED = 4096

_DEFLATE, _SHUFFLE, _FLETCHER32, _BZIP2, _BLOSC, _ZSTD = 1, 2, 3, 307, 32001, 32015
_BLOSC_NAMES = ("blosclz", "lz4", "lz4hc", "snappy", "zlib", "zstd")
_FILTERS = {
    4: "szip",
    5: "nbit",
    6: "scaleoffset",
    32000: "LZF",
    32004: "LZ4",
    32008: "bitshuffle",
    32013: "ZFP",
    32017: "SZ",
    32018: "FCIDECOMP",
    32024: "SZ3",
    32026: "Blosc2",
    32028: "SPERR",
    32033: "HTJ2K",
    _BZIP2: "bzip2",
    _BLOSC: "Blosc",
    _ZSTD: "Zstandard",
}
_OTHER_FILTERS = {305: "LZO", 32002: "MAFISC", 32003: "Snappy", 32007: "JPEG-XR", 32019: "JPEG"}
"""Filters that hdf5plugin does not have."""


class Filter(NamedTuple):
    """One filter of a dataset, with the values that it was set up with."""

    code: int
    values: Shape


class Translated(NamedTuple):
    """A dataset as an array.

    document : its ``zarr.json``.
    chunks : references to chunks, or their inlined bytes, by key below the array.
    box : how HDF5 reads chunks that have no reference; None: they were never written.
    """

    document: dict[str, Any]
    chunks: dict[str, Any]
    box: dict[str, Any] | None


def translate(dataset: Any, path: str, room: int, scales: Names) -> Translated:
    """The dataset of the file at ``path`` as an array. Raises NotServedError.

    room : most references.
    scales : the names of dimension scales that are known; more of them are added.
    """
    h5py = import_module("h5py")
    if dataset.id.get_space().get_simple_extent_type() == h5py.h5s.NULL:
        raise NotServedError("it has no elements, not even a shape (a null dataspace)")
    dtype, stored = _type(dataset), dataset.id.get_type()
    text = is_text(dtype)
    # The elements of an array type are further axes.
    base, inner = dtype.subdtype or (dtype, ())
    if inner and is_text(base):
        raise NotServedError("its elements are arrays of text, which Zarr does not have")
    shape = dataset.shape + inner
    plist = dataset.id.get_create_plist()
    layout = plist.get_layout()
    filters = [Filter(one[0], one[2]) for one in map(plist.get_filter, range(plist.get_nfilters()))]
    chunked = layout == h5py.h5d.CHUNKED
    chunks = dataset.chunks + inner if chunked else None
    kind, about = "string" if text else data_type(base), attributes(dataset)
    names = _dimension_names(dataset, len(shape), scales)
    codecs = None
    lengths: Sequence[Any] = chunks or ()
    found: dict[Shape, list[Any]] | None = None
    plain = layout in (h5py.h5d.CHUNKED, h5py.h5d.CONTIGUOUS) and not plist.get_external_count()
    same = not text and _is_same(h5py, base, dtype, stored)
    if chunks and not text:
        found = _stored(path, dataset, stored, filters, chunks, room)
    if plain and same:
        codecs = _codecs(filters)
        if codecs is not None and not chunks:
            lengths, found = _pieces(path, dataset, shape, base.itemsize)
    in_order = base.names is None or base == packed(base)
    # h5py has no function for the fill value of arrays.
    filled = inner and plist.fill_value_defined() == h5py.h5d.FILL_VALUE_USER_DEFINED
    by_reference = found is not None and codecs is not None and in_order and not filled
    if chunks is None:
        chunks = (min(shape[0], _TEXTS), *(1,) * (len(shape) - 1)) if text and shape else None
        chunks = chunks or cut(shape, base.itemsize)
    chunks = [max(1, length) for length in chunks]
    endian = "big" if by_reference and base.byteorder == ">" else "little"
    to_bytes = {"name": "bytes", "configuration": {"endian": endian}}
    document = array_document(
        shape,
        kind,
        lengths if by_reference and 0 not in shape else chunks,
        [{"name": "vlen-utf8"}] if text else [to_bytes],
        "" if text else _fill(h5py, plist, base, inner),
        about,
    )
    if names:
        document["dimension_names"] = names
    if found is None or codecs is None or not by_reference:
        _check_filters(h5py, filters)
        box = {
            "dataset": hdf5_boxes.encoded(dataset.name),
            "shape": list(shape),
            "chunks": chunks,
            "axes": len(dataset.shape),
            "dtype": None if text else hdf5_boxes.described(packed(base)),
            "item": 0 if text else packed(base).itemsize,
        }
        return Translated(document, *_inlined(dataset, box, layout == h5py.h5d.COMPACT))
    document["codecs"] += codecs
    return Translated(document, {chunk_key(index): place for index, place in found.items()}, None)


def _type(dataset: Any) -> np.dtype[Any]:
    try:
        return dataset.dtype  # type: ignore[no-any-return]
    except (TypeError, ValueError) as error:
        raise NotServedError("its elements have a type that NumPy does not have") from error


def _check_filters(h5py: Any, filters: list[Filter]) -> None:
    """Raises NotServedError if HDF5 does not have one of them."""
    for one in filters:
        if not h5py.h5z.filter_avail(one.code):
            name = _FILTERS.get(one.code) or _OTHER_FILTERS.get(one.code, "of no known name")
            where = "see the package hdf5plugin" if one.code in _FILTERS else "not installed"
            raise NotServedError(f"it needs the HDF5 filter {one.code} ({name}), {where}")


def _inlined(
    dataset: Any, box: dict[str, Any], compact: bool
) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """The bytes of a small dataset; else nothing, and the box."""
    counts = [-(-n // c) for n, c in zip(box["shape"], box["chunks"], strict=True)]
    if math.prod(counts) != 1 or (not compact and math.prod(box["shape"]) > _INLINED):
        return {}, box
    if (
        box["dtype"] is not None
        and math.prod(box["shape"]) * dataset.dtype.itemsize > 64 * _INLINED
    ):
        return {}, box
    plist = dataset.id.get_create_plist()
    if plist.get_external_count() or plist.get_layout() == import_module("h5py").h5d.VIRTUAL:
        # Paths may begin at the working directory, which may be that of another file here.
        return {}, box
    try:
        data = hdf5_boxes.read(dataset, box, [0] * len(counts))
    except (OSError, ValueError, UnicodeError):
        return {}, box  # the reader gets the reason
    if len(data) > 64 * _INLINED:
        return {}, box
    return {chunk_key((0,) * len(counts)): inlined(data)}, None


def _is_same(h5py: Any, base: np.dtype[Any], dtype: np.dtype[Any], stored: Any) -> bool:
    """Whether the bytes of an element in the file are those that NumPy has."""
    if base.subdtype is not None:
        return False
    if stored.get_class() in hdf5_boxes.AS_STORED:
        return True
    try:
        return bool(h5py.h5t.py_create(dtype, logical=True).equal(stored))
    except TypeError:
        return False


def _fill(h5py: Any, plist: Any, base: np.dtype[Any], inner: Shape) -> Any:
    element = np.zeros((), base)
    never = plist.get_fill_time() == h5py.h5d.FILL_TIME_NEVER
    undefined = plist.fill_value_defined() == h5py.h5d.FILL_VALUE_UNDEFINED
    if not (never or undefined or inner):
        plist.get_fill_value(element)
    return fill_value(element)


def _codecs(filters: list[Filter]) -> list[dict[str, Any]] | None:
    """The codecs that undo the filters; None if HDF5 has to."""
    found: list[dict[str, Any]] = []
    for code, values in filters:
        if code == _DEFLATE:
            found.append({"name": "numcodecs.zlib", "configuration": {"level": values[0]}})
        # Behind another filter the number of bytes need not be a multiple of the size.
        elif code == _SHUFFLE and values and not found:
            size = {"elementsize": values[0]}
            found += [{"name": "numcodecs.shuffle", "configuration": size}] if values[0] > 1 else []
        elif code == _FLETCHER32:
            found.append({"name": "numcodecs.fletcher32", "configuration": {}})
        elif code == _BZIP2 and values:
            found.append({"name": "numcodecs.bz2", "configuration": {"level": values[0]}})
        elif code == _ZSTD:
            found.append({"name": "zstd", "configuration": {"level": 3, "checksum": False}})
        elif code == _BLOSC and len(values) > 6 and values[6] < len(_BLOSC_NAMES):
            shuffle = ("noshuffle", "shuffle", "bitshuffle")[values[5] % 3]
            configuration = {
                "cname": _BLOSC_NAMES[values[6]],
                "clevel": values[4],
                "shuffle": shuffle,
                "typesize": max(1, values[2]),
                "blocksize": 0,
            }
            found.append({"name": "blosc", "configuration": configuration})
        else:
            return None
    return found


def _stored(
    path: str, dataset: Any, stored: Any, filters: list[Filter], chunks: Shape, room: int
) -> dict[Shape, list[Any]] | None:
    """References to the stored chunks by index; None if HDF5 has to read them.

    Raises NotServedError for a chunk of a wrong size, of which HDF5 would read bytes of other data.
    """
    lengths = dataset.chunks
    nbytes = math.prod(lengths) * stored.get_size()
    more = (0,) * (len(chunks) - len(lengths))
    every = (1 << len(filters)) - 1
    found: dict[Shape, list[Any]] = {}
    wrong: list[str] = []

    def add(info: Any) -> bool | None:
        if info.filter_mask & every == every and info.size != nbytes:
            wrong.append(f"the chunk at {info.chunk_offset} has {info.size} bytes, not {nbytes}")
            return True
        index = tuple(at // n for at, n in zip(info.chunk_offset, lengths, strict=True))
        last = any(
            at + n > length
            for at, n, length in zip(info.chunk_offset, lengths, dataset.shape, strict=True)
        )
        # A writer may have HDF5 filter no chunks at the end, which no chunk says.
        unfiltered = bool(filters) and last and info.size == nbytes
        if not (info.filter_mask or unfiltered or info.byte_offset is None or len(found) >= room):
            found[index + more] = [path, info.byte_offset, info.size]
            return None
        by_hdf5.append(True)
        return None

    by_hdf5: list[bool] = []
    dataset.id.chunk_iter(add)
    if dataset.maxshape[0] is not None and dataset.maxshape.count(None) == 1:
        # HDF5 (2.0 too) tells wrong places of chunks if one axis is unlimited, and not the first.
        by_hdf5.append(True)
    if wrong:
        raise NotServedError(wrong[0])
    return None if by_hdf5 else found


def _pieces(
    path: str, dataset: Any, shape: Shape, item: int
) -> tuple[Sequence[Any], dict[Shape, list[Any]]]:
    """As `found.pieces`, of a contiguous dataset; no reference if it was never written."""
    at, stored = dataset.id.get_offset(), dataset.id.get_storage_size()
    if at is None or not stored or 0 in shape:
        return cut(shape, item), {}
    if stored < math.prod(shape) * item:
        raise NotServedError(f"only {stored} bytes of it are stored")
    return pieces(path, shape, item, at)


def address(thing: Any) -> tuple[int, int]:
    """Tells an object from all others."""
    info = import_module("h5py").h5o.get_info(thing.id)
    return info.fileno, info.addr


def is_hard_link(group: Any, name: str | bytes) -> bool:
    """Whether a name in a group is no link that HDF5 would follow, also out of the folder."""
    links, key = group.id.links, name if isinstance(name, bytes) else name.encode()
    hard: int = import_module("h5py").h5l.TYPE_HARD
    return bool(links.exists(key) and links.get_info(key).type == hard)


def is_dimension_only(dataset: Any) -> bool:
    """Whether this is how NetCDF-4 keeps a dimension that has no variable."""
    if not import_module("h5py").h5ds.is_scale(dataset.id) or dataset.id.get_storage_size():
        return False
    try:
        name = dataset.attrs.get("NAME", b"")
    except (OSError, RuntimeError, TypeError, ValueError, KeyError):
        return False
    return isinstance(name, bytes) and name.startswith(b"This is a netCDF dimension but not")


def _dimension_names(dataset: Any, rank: int, known: Names) -> list[str | None]:
    h5py = import_module("h5py")
    names: list[str | None] = []
    for axis in range(len(dataset.shape)):
        try:
            scales = dataset.dims[axis]
            if len(scales):
                scale = scales[0]
                # HDF5 searches the whole file for the name of an object that a reference leads to.
                if (place := address(scale)) not in known:
                    known[place] = decoded(scale.name)
                names.append(_seen_from(dataset, known[place]))
            elif h5py.h5ds.is_scale(dataset.id):
                names.append(decoded(dataset.name).rpartition("/")[2])
            else:
                names.append(f"phony_dim_{axis}")
        except (OSError, RuntimeError, TypeError, ValueError, KeyError, AttributeError):
            names.append(None)
    return names + [None] * (rank - len(names))


def _seen_from(dataset: Any, scale: str) -> str:
    """The name of a scale, without its path if it is the nearest of that name in a group above."""
    folder, _, name = scale.rpartition("/")
    group = decoded(dataset.name).rpartition("/")[0]
    if not f"{group}/".startswith(f"{folder}/"):
        return scale[1:]
    h5py = import_module("h5py")
    while group != folder:
        above = dataset.file[group]
        nearer = above[name] if is_hard_link(above, name) else None
        if isinstance(nearer, h5py.Dataset) and h5py.h5ds.is_scale(nearer.id):
            return scale[1:]
        group = group.rpartition("/")[0]
    return name


def other_files(dataset: Any, path: str, folder: str) -> Iterator[tuple[str, str | None]]:
    """All other places that hold data of the dataset of the file at ``path``.

    folder : where paths of raw data begin.

    Each is the path of a file of raw bytes, or that of an HDF5 file and a dataset in it. Raises
    NotServedError.
    """
    h5py = import_module("h5py")
    directory = os.path.dirname(path)
    plist = dataset.id.get_create_plist()
    left = dataset.size * dataset.dtype.itemsize if plist.get_external_count() else 0
    for number in range(plist.get_external_count()):
        name, offset, size = plist.get_external(number)
        raw = os.path.join(folder, os.fsdecode(name))
        yield raw, None
        needed = min(size, left)
        # HDF5 reads zeros behind the end of such a file.
        if os.stat(raw).st_size < offset + needed:
            raise NotServedError(f"{raw} ends before its data do")
        left -= needed
    if plist.get_layout() == h5py.h5d.VIRTUAL:
        for source in dataset.virtual_sources():
            if "%" in source.file_name or "%" in source.dset_name:
                raise NotServedError("it is made of files or datasets whose names are counted")
            where = path if source.file_name == "." else os.path.join(directory, source.file_name)
            yield where, source.dset_name
