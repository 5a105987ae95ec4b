"""Makes codec pipelines from their JSON in v3 metadata."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from zarrfs import bounds
from zarrfs.errors import reason_of
from zarrfs.format.chunk_grid import shape_of
from zarrfs.format.pipeline import CodecPipeline
from zarrfs.format.registry import CodecKind, find_codec
from zarrfs.format.unserved import UnservedError, name_and_configuration

ALLOWED: Mapping[str, Mapping[str, Sequence[Any]]] = {
    "bytes": {"endian": ("little", "big")},
    "gzip": {"level": range(10)},
    "zstd": {"level": range(-131072, 23), "checksum": (False, True)},
    "blosc": {
        "cname": ("blosclz", "lz4", "lz4hc", "snappy", "zlib", "zstd"),
        "clevel": range(10),
        "shuffle": ("noshuffle", "shuffle", "bitshuffle"),
        "blocksize": range(1 << 62),
        "typesize": range(1, 1 << 62),
    },
    "sharding_indexed": {"index_location": ("end", "start")},
}
"""Values of members of the core codecs' configurations, in the order in which users type them."""


def parse_pipeline(codecs: Sequence[Any]) -> CodecPipeline:
    """Configure codecs from their JSON, in encoding order.

    Raises UnservedError for an unknown codec, ValueError for a malformed codec or an invalid
    order.
    """
    if not isinstance(codecs, list | tuple):
        raise ValueError("expected a list of codecs")
    bounds.check_count(len(codecs), bounds.MOST_CODECS, "codecs")
    chain = []
    for value in codecs:
        name, configuration = name_and_configuration(value, "codec")
        if (found := find_codec(name)) is None:
            raise UnservedError(f"unknown codec {name!r}")
        kind, make = found
        chain.append((kind, configured(name, partial(_checked, name, make), configuration)))
    return in_order(chain)


def _checked(name: str, make: Callable[..., Any], /, **members: Any) -> Any:
    for member in ("codecs", "index_codecs"):
        if member in members:
            members[member] = parse_pipeline(members[member])
    for member, allowed in ALLOWED.get(name, {}).items():
        value = members.get(member, allowed[0])
        if type(value) is not type(allowed[0]) or value not in allowed:
            raise ValueError(f"{member} is {value!r}")
    for member, least in (("chunk_shape", 1), ("order", 0)):
        if member in members:
            members[member] = shape_of(members[member], least)
    return make(**members)


def configured(name: str, make: Callable[..., Any], configuration: Mapping[str, Any]) -> Any:
    """Make a codec of its configuration. Raises ValueError that names it, and UnservedError."""
    try:
        return make(**{member: frozen(item) for member, item in configuration.items()})
    except (UnservedError, bounds.OutOfBoundsError):
        raise
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"codec {name!r}: {reason_of(error)}") from error


def in_order(codecs: Sequence[tuple[CodecKind, Any]]) -> CodecPipeline:
    """The pipeline of configured codecs. Raises ValueError for an invalid order."""
    kinds = [kind for kind, _ in codecs]
    if kinds.count("array -> bytes") != 1:
        raise ValueError("expected exactly one array -> bytes codec")
    middle = kinds.index("array -> bytes")
    if "bytes -> bytes" in kinds[:middle] or "array -> array" in kinds[middle:]:
        raise ValueError("codecs must go from array to array, then to bytes, then bytes to bytes")
    made = [codec for _, codec in codecs]
    return CodecPipeline(tuple(made[:middle]), made[middle], tuple(made[middle + 1 :]))


def frozen(value: Any) -> Any:
    """JSON with tuples in place of lists, so that codecs can be compared and hashed."""
    if isinstance(value, list | tuple):
        return tuple(frozen(item) for item in value)
    if isinstance(value, Mapping):
        return {key: frozen(item) for key, item in value.items()}
    return value
