"""Elements of raw bits, ``r<N>``.

No peer exchanges them with numpy, so one writes their bytes along another axis, which is
then taken out of its document: the chunks stay as they are.
"""

import json
from base64 import b64encode
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.interop.data_types import Fill
from tests.interop.documents import array_bytes, chunk_keys, gzip, sharding
from tests.interop.peers import WRITERS
from tests.interop.served_files import DirectFiles
from tests.interop.spec import Spec


@pytest.mark.parametrize("size", [1, 2, 3, 16])
@pytest.mark.parametrize(
    ("sharded", "form", "writer"),
    [
        (False, "list", "zarr-python"),
        (False, "base64", "tensorstore"),
        (True, "base64", "zarr-python"),
        (True, "list", "tensorstore"),
    ],
)
def test_raw_bits(
    size: int,
    sharded: bool,
    form: str,
    writer: str,
    tmp_path: Path,
    open_direct: Callable[[object], DirectFiles],
) -> None:
    inside = [array_bytes(), gzip()]
    spec = Spec(
        "uint8",
        Fill("zero", 0, b"\0"),
        shape=(7, 5, size),
        stored=(4, 4, size),
        inner=(2, 2, size),
        keys=chunk_keys("default", "/"),
        codecs=(sharding((2, 2, size), inside),) if sharded else tuple(inside),
    )
    data = np.random.default_rng(size).integers(1, 256, spec.shape, "u1")
    WRITERS[writer](tmp_path, spec, data)
    # A chunk that is not stored: its fill value is of raw bits.
    (tmp_path / "c/0/0/0").unlink()
    fill = bytes(range(200, 200 + size))
    data[:4, :4] = np.frombuffer(fill, "u1")
    _take_last_axis(tmp_path, 8 * size, list(fill) if form == "list" else b64encode(fill).decode())

    files = open_direct(tmp_path)
    assert files.read("array.bin") == data.tobytes()
    assert files.read("chunks/0/0") == fill * (4 if sharded else 16)
    if sharded:
        assert files.read("shards/0/0") == fill * 16


def _take_last_axis(array: Path, bits: int, fill_value: object) -> None:
    path = array / "zarr.json"
    document = json.loads(path.read_text())
    document["shape"].pop()
    document["chunk_grid"]["configuration"]["chunk_shape"].pop()
    document |= {"data_type": f"r{bits}", "fill_value": fill_value}
    for codec in document["codecs"]:
        if codec["name"] == "sharding_indexed":
            codec["configuration"]["chunk_shape"].pop()
    path.write_text(json.dumps(document))
    for chunk in list(array.glob("c/*/*/0")):
        moved = chunk.rename(chunk.with_name("moved"))
        place = chunk.parent
        moved = moved.rename(place.with_name(f"{place.name}.moved"))
        place.rmdir()
        moved.rename(place)
    for empty in list(array.glob("c/*/*")):
        if empty.is_dir():
            empty.rmdir()
