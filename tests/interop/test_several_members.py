"""Compressed chunks of other shapes than the writers give them: members, frames, streams."""

from __future__ import annotations

import gzip as gzip_module
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from numcodecs import Zstd

from .data_types import FILLS
from .documents import Json, array_bytes, chunk_keys, gzip, zstd
from .peers import READERS, WRITERS
from .served_files import DirectFiles
from .spec import Spec


def gzip_members(parts: list[bytes]) -> bytes:
    return b"".join(map(gzip_module.compress, parts))


def gzip_named_member(parts: list[bytes]) -> bytes:
    """One member that has the optional file name and time, as the program gzip writes it."""
    target = BytesIO()
    with gzip_module.GzipFile("name.bin", "wb", fileobj=target, mtime=1) as member:
        for part in parts:
            member.write(part)
    return target.getvalue()


def gzip_empty_members(parts: list[bytes]) -> bytes:
    return gzip_members([b"", *parts, b""])


def zstd_frames(parts: list[bytes]) -> bytes:
    return b"".join(Zstd(level=1).encode(part) for part in parts)


def zstd_frames_of_both_kinds(parts: list[bytes]) -> bytes:
    """With checksums and without."""
    return b"".join(
        Zstd(level=i + 1, checksum=bool(i % 2)).encode(part) for i, part in enumerate(parts)
    )


def zstd_skippable_frames(parts: list[bytes]) -> bytes:
    """With frames between that hold no data (RFC 8878, section 3.1.2)."""
    skippable = (0x184D2A53).to_bytes(4, "little") + (5).to_bytes(4, "little") + b"hello"
    return skippable + skippable.join(Zstd(level=1).encode(part) for part in parts) + skippable


def zstd_frame_of_unknown_size(parts: list[bytes]) -> bytes:
    """One frame of raw blocks that does not tell its size, as a stream is written."""
    magic, descriptor, window = (0xFD2FB528).to_bytes(4, "little"), b"\x00", b"\x50"
    blocks = [
        (int(i == len(parts) - 1) | len(part) << 3).to_bytes(3, "little") + part
        for i, part in enumerate(parts)
    ]
    return magic + descriptor + window + b"".join(blocks)


FORMS = {
    gzip_members: (gzip(), {"zarr-python"}),
    gzip_named_member: (gzip(), {"zarr-python", "tensorstore", "zarrs"}),
    gzip_empty_members: (gzip(), {"zarr-python"}),
    zstd_frames: (zstd(), {"zarr-python", "zarrs"}),
    zstd_frames_of_both_kinds: (zstd(), {"zarr-python", "zarrs"}),
    zstd_skippable_frames: (zstd(), {"zarr-python", "zarrs"}),
    zstd_frame_of_unknown_size: (zstd(), {"zarr-python", "tensorstore", "zarrs"}),
}
"""The codec of each, and who reads it."""


@pytest.mark.parametrize("encode", FORMS, ids=lambda encode: encode.__name__)
def test_form(
    encode: Callable[[list[bytes]], bytes],
    tmp_path: Path,
    open_direct: Callable[[object], DirectFiles],
) -> None:
    codec, readers = FORMS[encode]
    spec = _spec(codec)
    data = np.arange(4_000, dtype=spec.dtype)
    WRITERS["tensorstore"](tmp_path, spec, data)
    for number, start in enumerate(range(0, 4_000, 1_000)):
        chunk = data[start : start + 1_000].tobytes()
        parts = [chunk[i : i + 700] for i in range(0, len(chunk), 700)]
        (tmp_path / f"c/{number}").write_bytes(encode(parts))
    assert open_direct(tmp_path).read("array.bin") == data.tobytes()
    for reader in readers:
        assert READERS[reader](tmp_path).tobytes() == data.tobytes(), reader


def _spec(codec: Json) -> Spec:
    fill = FILLS["int32"][0]
    keys = chunk_keys("default", "/")
    return Spec("int32", fill, (4_000,), (1_000,), (1_000,), keys, (array_bytes(), codec))
