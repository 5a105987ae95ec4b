"""Every setting of every compressor of the core, by each writer that has it."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from tests.interop.data_types import FILLS
from tests.interop.documents import (
    CRC32C,
    Json,
    array_bytes,
    blosc,
    chunk_keys,
    gzip,
    sharding,
    zstd,
)
from tests.interop.peers import WRITERS
from tests.interop.served_files import DirectFiles
from tests.interop.spec import Array, Spec

CNAMES = ("blosclz", "lz4", "lz4hc", "snappy", "zlib", "zstd")
SHUFFLES = ("noshuffle", "shuffle", "bitshuffle")


def spec_of(codecs: list[Json], data_type: str = "int32", *, sharded: bool = False) -> Spec:
    if sharded:
        codecs = [sharding((50, 40), codecs)]
    return Spec(
        data_type,
        FILLS[data_type][0],
        shape=(250, 90),
        stored=(100, 80),
        inner=(50, 40) if sharded else (100, 80),
        keys=chunk_keys("default", "/"),
        codecs=tuple(codecs),
    )


def compressible(spec: Spec) -> Array:
    """Chunks that are compressed, not stored as they are; one of noise, which is."""
    rows, columns = np.ogrid[: spec.shape[0], : spec.shape[1]]
    data = (rows // 5 * 7 + columns // 20).astype(spec.dtype)
    noise = np.random.default_rng(0).integers(0, 256, (50, 10 * spec.dtype.itemsize), "u1")
    data[200:, 80:] = noise.view(spec.dtype)
    return data


@pytest.fixture
def check(tmp_path: Path, open_direct: Callable[[object], DirectFiles]) -> Callable[..., None]:
    def check_written(writer: str, *specs: Spec) -> None:
        for number, spec in enumerate(specs):
            data = compressible(spec)
            WRITERS[writer](tmp_path / str(number), spec, data)
            files = open_direct(tmp_path / str(number))
            assert files.read("array.bin") == data.tobytes(), spec.codecs

    return check_written


@pytest.mark.parametrize("shuffle", SHUFFLES)
@pytest.mark.parametrize("cname", CNAMES)
@pytest.mark.parametrize("writer", WRITERS)
def test_blosc(writer: str, cname: str, shuffle: str, check: Callable[..., None]) -> None:
    if cname == "snappy" and writer == "zarr-python":
        pytest.skip("its Blosc has no Snappy")
    sizes = {"int8": 1, "int32": 4, "float64": 8}
    check(
        writer,
        *(
            spec_of([array_bytes(), blosc(cname, shuffle, typesize=size)], data_type)
            for data_type, size in sizes.items()
        ),
        # The unit of the shuffle need not be the element, nor the blocks what Blosc chooses.
        spec_of([array_bytes("big"), blosc(cname, shuffle, typesize=3, blocksize=512)]),
        spec_of([array_bytes(), blosc(cname, shuffle, clevel=9), CRC32C], sharded=True),
    )


@pytest.mark.parametrize("writer", WRITERS)
def test_levels(writer: str, check: Callable[..., None]) -> None:
    codecs = [*map(gzip, range(10)), *(blosc(clevel=level) for level in range(10))]
    frames = [partial(zstd, checksum=checksum) for checksum in (False, True)]
    codecs += [frame(level) for frame in frames for level in (-5, 0, 1, 3, 9, 19, 22)]
    check(
        writer,
        *(spec_of([array_bytes(), codec]) for codec in codecs),
        *(spec_of([array_bytes(), frame()], sharded=True) for frame in frames),
    )
