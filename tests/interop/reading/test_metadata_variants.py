"""Documents in forms that the specification has not: what two peers read, zarrfs reads."""

import ctypes
import json
import math
import shutil
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorstore as ts
import zarr
from zarr.storage import LocalStore
from zarrs._internal import ChunkItem, CodecPipelineImpl

import zarrfs
from docs.format_support.samples import DOCUMENTS, parse
from tests.interop.metadata_variants import VARIANTS, Variant
from tests.soak import EXHAUSTIVE
from zarrfs.errors import ZarrfsError
from zarrfs.format.metadata.node import ArrayMetadata
from zarrfs.format.metadata.pipelines import parse_pipeline

pytestmark = pytest.mark.timeout(600)

SHAPE, CHUNK = (4, 3), (2, 3)
# Most are fill values: every fourth variant of these, or all with `make soak`.
SAMPLE = [v for n, v in enumerate(VARIANTS) if EXHAUSTIVE or n % 4 == 0 or "fill" not in v.name]
OPTIONS = zarrfs.SourceOptions(memory=16 << 20, loaders=1)


def write(place: Path, variant: Variant) -> ArrayMetadata:
    """The document, and the first of two chunks: the second one is fill value.

    Returns what the strict document says.
    """
    place.mkdir()
    strict = parse(variant.version, json.dumps(variant.strict))
    layout = strict.layout
    pipeline = layout.pipeline
    if layout.sharded:
        pipeline = parse_pipeline(strict.summary["codecs"])
    codec = pipeline.bind(layout.spec(CHUNK))
    dtype = layout.data_type.dtype
    elements = np.array([[0] * 3, [1] * 3], "u1")
    if dtype.kind in "biufcMm":
        chunk = elements.astype(dtype)
    else:
        parts = elements.repeat(dtype.itemsize // (4 if dtype.kind == "U" else 1))
        chunk = parts.astype("<u4" if dtype.kind == "U" else "u1").view(dtype).reshape(CHUNK)
    path = place / strict.chunk_keys.key((0, 0))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(bytes(codec.encode(chunk)))
    (place / DOCUMENTS[variant.version]).write_text(variant.text)
    return strict


def bits(elements: Any) -> bytes:
    array = np.asarray(elements)
    return array.astype(array.dtype.newbyteorder("<")).tobytes()


def by_zarrfs(place: Path) -> bytes:
    with zarrfs.open_array(str(place), options=OPTIONS) as array:
        return bits(array[...])


def by_zarr_python(place: Path, variant: Variant, strict: ArrayMetadata) -> bytes:
    pipeline = "zarr.core.codec_pipeline.BatchedCodecPipeline"
    with warnings.catch_warnings(), zarr.config.set({"codec_pipeline.path": pipeline}):
        warnings.simplefilter("ignore")
        return bits(zarr.open_array(str(place), mode="r", zarr_format=variant.version)[...])


def by_tensorstore(place: Path, variant: Variant, strict: ArrayMetadata) -> bytes:
    spec = {
        "driver": {2: "zarr", 3: "zarr3"}[variant.version],
        "kvstore": {"driver": "file", "path": f"{place}/"},
    }
    array = ts.open(spec, read=True).result()
    elements = np.asarray(array.read().result())
    if array.dtype != ts.byte:
        return bits(elements)
    # Raw bytes have no size for numpy; they are there all the same.
    return ctypes.string_at(elements.ctypes.data, math.prod(elements.shape))


def by_zarrs(place: Path, variant: Variant, strict: ArrayMetadata) -> bytes:
    """Its grid and keys are those of the strict document: it is not asked about them."""
    text = (place / DOCUMENTS[variant.version]).read_text()
    pipeline = CodecPipelineImpl(text, LocalStore(place), validate_checksums=True)
    size = strict.layout.data_type.item_size
    whole = np.frombuffer(b"\x55" * (size * math.prod(SHAPE)), f"V{size}").reshape(SHAPE).copy()
    chunks = [
        ChunkItem(
            strict.chunk_keys.key((row, 0)),
            [slice(0, 2), slice(0, 3)],
            CHUNK,
            [slice(2 * row, 2 * row + 2), slice(0, 3)],
            SHAPE,
        )
        for row in range(2)
    ]
    pipeline.retrieve_chunks_and_apply_index(chunks, whole)
    return whole.tobytes()


# zarr-python takes longest, and is asked last.
PEERS = (by_zarrs, by_tensorstore, by_zarr_python)


def agreed(place: Path, variant: Variant, strict: ArrayMetadata) -> bytes | None:
    """What two of those that read it find alike."""
    found: list[bytes] = []
    for read in PEERS:
        if read is PEERS[-1] and not found:
            return None
        try:
            value = read(place, variant, strict)
        except Exception:  # noqa: BLE001 - whatever they raise, they do not read it
            continue
        except BaseException as error:
            # A Rust panic does not derive from Exception.
            if type(error).__name__ != "PanicException":
                raise
            continue
        if value in found:
            return value
        found.append(value)
    return None


@pytest.mark.soak
def test_what_two_peers_read_is_read(tmp_path: Path) -> None:
    wrong, compared, place = [], 0, tmp_path / "array"
    for variant in SAMPLE:
        shutil.rmtree(place, ignore_errors=True)
        strict = write(place, variant)
        expected = agreed(place, variant, strict)
        if expected is None:
            continue
        compared += 1
        try:
            if by_zarrfs(place) != expected:
                wrong.append(f"{variant.name}: other values")
        except ZarrfsError as error:
            wrong.append(f"{variant.name}: {error}")
    assert not wrong, "\n".join(wrong)
    assert compared > (350 if EXHAUSTIVE else 150)
