"""Ways to put inner chunks into shards: codec pipelines of equal meaning."""

from collections.abc import Callable, Sequence

from .documents import CRC32C, Json, array_bytes, gzip, sharding, transpose, zstd

Shape = tuple[int, ...]
Codecs = list[Json]
Sharding = Callable[[Shape, Shape, Codecs], Codecs]
"""From the shapes of the middle and the inner chunks, in the array's axis order, and the
codecs of the inner chunks, to the codecs of the array."""


def cycled(rank: int) -> list[int]:
    """An order of axes that is not its own inverse, where there are three or more."""
    return [(axis + 1) % rank for axis in range(rank)]


def permuted(shape: Shape, order: Sequence[int]) -> Shape:
    return tuple(shape[axis] for axis in order)


def _index(*codecs: Json, location: str = "end") -> Sharding:
    return lambda middle, inner, inside: [
        sharding(inner, inside, location=location, index_codecs=codecs)
    ]


def _transposed_index(middle: Shape, inner: Shape, inside: Codecs) -> Codecs:
    order = cycled(len(inner) + 1)
    return [sharding(inner, inside, index_codecs=(transpose(order), array_bytes(), CRC32C))]


def _nested(middle: Shape, inner: Shape, inside: Codecs) -> Codecs:
    return [sharding(middle, [sharding(inner, inside, location="start")])]


def _nested_start(middle: Shape, inner: Shape, inside: Codecs) -> Codecs:
    plain = (array_bytes("big"),)
    return [sharding(middle, [sharding(inner, inside, index_codecs=plain)], location="start")]


def _nested_compressed(middle: Shape, inner: Shape, inside: Codecs) -> Codecs:
    return [sharding(middle, [sharding(inner, inside), zstd(), CRC32C])]


def _transposed(middle: Shape, inner: Shape, inside: Codecs) -> Codecs:
    order = cycled(len(inner))
    return [transpose(order), sharding(permuted(inner, order), inside)]


def _transposed_between(middle: Shape, inner: Shape, inside: Codecs) -> Codecs:
    order = cycled(len(inner))
    return [sharding(middle, [transpose(order), sharding(permuted(inner, order), inside)])]


def _transposed_twice(middle: Shape, inner: Shape, inside: Codecs) -> Codecs:
    order = cycled(len(inner))
    inner_order = permuted(tuple(order), order)
    between = [transpose(order), sharding(permuted(inner, inner_order), inside, location="start")]
    return [transpose(order), sharding(permuted(middle, order), between)]


def _followed(*codecs: Json) -> Sharding:
    return lambda middle, inner, inside: [sharding(inner, inside), *codecs]


SHARDINGS: dict[str, Sharding] = {
    "none": lambda middle, inner, inside: inside,
    "end": _index(array_bytes(), CRC32C),
    "start": _index(array_bytes(), CRC32C, location="start"),
    "index_unchecked": _index(array_bytes()),
    "index_big": _index(array_bytes("big"), CRC32C),
    "index_start_big_unchecked": _index(array_bytes("big"), location="start"),
    "index_checked_twice": _index(array_bytes(), CRC32C, CRC32C),
    "index_transposed": _transposed_index,
    "nested": _nested,
    "nested_start_big": _nested_start,
    "nested_compressed": _nested_compressed,
    "transposed_before": _transposed,
    "transposed_between": _transposed_between,
    "transposed_twice": _transposed_twice,
    "followed_by_gzip": _followed(gzip()),
    "followed_by_crc32c": _followed(CRC32C),
    "followed_by_zstd_crc32c": _followed(zstd(), CRC32C),
}
