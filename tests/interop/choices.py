"""What arrays are combined from."""

from collections.abc import Callable

from .documents import CRC32C, Json, array_bytes, blosc, chunk_keys, gzip, transpose, zstd
from .shardings import cycled

KEYS = {
    f"{name}{separator}": chunk_keys(name, separator)
    for name in ("default", "v2")
    for separator in "/."
}

Chain = Callable[[int, int], list[Json]]
"""From the rank and the size of an element to the codecs of a chunk."""

CHAINS: dict[str, Chain] = {
    "little": lambda rank, size: [array_bytes()],
    "big": lambda rank, size: [array_bytes("big")],
    "gzip": lambda rank, size: [array_bytes(), gzip()],
    "zstd": lambda rank, size: [array_bytes(), zstd()],
    "zstd_checksum_crc32c": lambda rank, size: [array_bytes(), zstd(checksum=True), CRC32C],
    "blosc": lambda rank, size: [array_bytes(), blosc(typesize=size)],
    "big_blosc_bits": lambda rank, size: [
        array_bytes("big"),
        blosc("zstd", "bitshuffle", typesize=size),
    ],
    "crc32c": lambda rank, size: [array_bytes(), CRC32C],
    "gzip_zstd": lambda rank, size: [array_bytes(), gzip(), zstd()],
    "crc32c_gzip": lambda rank, size: [array_bytes(), CRC32C, gzip(9)],
    "transposed": lambda rank, size: [transpose(cycled(rank)), array_bytes()],
    "reversed_big_gzip": lambda rank, size: [
        transpose(range(rank)[::-1]),
        array_bytes("big"),
        gzip(),
    ],
    "transposed_twice_zstd": lambda rank, size: [
        transpose(cycled(rank)),
        transpose(range(rank)[::-1]),
        array_bytes(),
        zstd(),
    ],
}
