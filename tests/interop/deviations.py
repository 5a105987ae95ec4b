"""Where a peer differs from the specification, or from the others: it decides nothing there.

Found with zarr-python 3.1.6, tensorstore 0.1.86 and zarrs-python 0.2.3.
"""

import math
from collections.abc import Iterator, Sequence

import numpy as np

from .documents import Json
from .spec import Array, Shape, Spec, box, grid


def cannot_write(writer: str, spec: Spec, data: Array | None = None) -> str | None:
    """Why ``writer`` refuses to make such an array, or makes another one; None if it does not.

    data : what it is to write; None: whatever it can.
    """
    if writer == "zarr-python" and data is not None and _mistaken_for_fill(spec, data):
        return "leaves out chunks of NaN where that is the fill value, whatever their bits"
    if writer != "tensorstore":
        if _odd_nans(spec):
            return "writes every NaN fill value as NaN, without its bits"
        if spec.shape == () and spec.sharded:
            return "does not write shards without axes"
    return cannot_read(writer, spec)


def cannot_read(reader: str, spec: Spec) -> str | None:
    """Why ``reader`` refuses such an array, or reads it wrong; None if it does not."""
    if reader == "tensorstore":
        return "refuses codecs after sharding" if _followed_sharding(spec.codecs) else None
    if not _untransposed_shards_divide(spec.stored, spec.codecs):
        return "checks inner chunks against shards before they are transposed"
    if _odd_nans(spec):
        return "loses bits of NaN fill values"
    if reader == "zarrs":
        if spec.shape == ():
            return "refuses arrays without axes"
        if spec.dtype.kind == "c" and _big_endian(spec.codecs):
            return "reverses the parts of big-endian complex elements together"
    return None


def _mistaken_for_fill(spec: Spec, data: Array) -> bool:
    """Whether some chunk is nothing but NaN, as the fill value is, with other bits."""
    if spec.dtype.kind not in "fc" or not np.isnan(spec.filled(())):
        return False
    chunks = (data[box(index, spec.inner)] for index in grid(spec.shape, spec.inner))
    return any(
        np.isnan(chunk).all() and chunk.tobytes() != spec.filled(chunk.shape).tobytes()
        for chunk in chunks
    )


def _odd_nans(spec: Spec) -> bool:
    if spec.dtype.kind not in "fc":
        return False
    size = spec.dtype.itemsize // (2 if spec.dtype.kind == "c" else 1)
    parts = np.frombuffer(spec.fill.bits, f"<f{size}")
    quiet = np.array(math.nan, parts.dtype).tobytes()
    return any(np.isnan(part) and part.tobytes() != quiet for part in parts)


def _nested(codecs: Sequence[Json]) -> Iterator[Sequence[Json]]:
    yield codecs
    for codec in codecs:
        if codec["name"] == "sharding_indexed":
            yield from _nested(codec["configuration"]["codecs"])


def _followed_sharding(codecs: Sequence[Json]) -> bool:
    return any(
        "sharding_indexed" in [codec["name"] for codec in level[:-1]] for level in _nested(codecs)
    )


def _big_endian(codecs: Sequence[Json]) -> bool:
    return any(
        codec["name"] == "bytes" and codec["configuration"].get("endian") == "big"
        for level in _nested(codecs)
        for codec in level
    )


def _untransposed_shards_divide(shard: Shape, codecs: Sequence[Json]) -> bool:
    for level in _nested(codecs):
        for codec in level:
            if codec["name"] == "sharding_indexed":
                inner = tuple(codec["configuration"]["chunk_shape"])
                if any(s % i for s, i in zip(shard, inner, strict=True)):
                    return False
                shard = inner
    return True
