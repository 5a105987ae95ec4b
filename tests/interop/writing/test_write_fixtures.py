"""Arrays that other people's software wrote are written to, whatever they are made of."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.fs.loop import Loop
from tests.fs.writable import Writable
from tests.fs.write_store import WriteStore
from tests.interop.fixtures import Fixture, load, refusal
from tests.interop.peers import READERS
from tests.soak import EXHAUSTIVE


def sample() -> Iterator[Fixture]:
    """All with `make soak`, or some with every data type, and all codecs with every fill value."""
    seen = set[tuple[str, ...]]()
    for fixture in load():
        known = {name: str(value) for name, value in fixture.known.items()}
        data_type = known.get("dtype", fixture.name)
        codecs = known.get("codecs", ""), known.get("fill_value", "")
        kinds = {(known["zarr_format"], *kind) for kind in ((data_type,), codecs)}
        if refusal(fixture) is None and (EXHAUSTIVE or not kinds <= seen):
            seen |= kinds
            yield fixture


FIXTURES = list(sample())
MOST_BYTES = 1 << 20
LOSSY = ("fixedscaleoffset", "quantize", "bitround", "zfp")


def content(loop: Loop, store: WriteStore, **config: Any) -> bytes:
    mount = Writable(loop, WriteStore(store.objects), **config)
    try:
        return mount.read("array.bin")
    finally:
        mount.close()


@pytest.mark.soak
@pytest.mark.skipif(not FIXTURES, reason="they are not here")
@pytest.mark.parametrize("fixture", FIXTURES, ids=lambda fixture: fixture.name)
def test_fixture(fixture: Fixture, tmp_path: Path, loop: Loop) -> None:
    if fixture.view != "array.bin":
        pytest.skip("its elements have no fixed size")
    config = {"zarr_format": 2} if fixture.name.endswith("#v2") else {}
    store = WriteStore.of_directory(fixture.source)
    mount = Writable(loop, store, **config)
    try:
        if "array.bin" not in mount.ls():
            pytest.skip("its elements have no fixed size")
        old = mount.read("array.bin")
        if len(old) > MOST_BYTES:
            pytest.skip("is large")
        item = mount.array().array.layout.data_type.item_size
        # Values that it can hold, all in other places.
        elements = np.frombuffer(old, f"V{item}") if old else np.empty(0, f"V{item}")
        new = np.roll(elements, 1 + len(elements) // 3)[::-1].tobytes()
        mount.write("array.bin", 0, new)
        assert content(loop, store, **config) == new
        place = len(elements) // 2
        changed = bytearray(new)
        changed[place * item : (place + 1) * item] = old[:item]
        mount.write("array.bin", place * item, old[:item])
        if not any(name in fixture.known.get("codecs", "") for name in LOSSY):
            assert content(loop, store, **config) == changed
    finally:
        mount.close()
    if fixture.version == 2 and any("zarr-python" in r for r in fixture.known.get("readers", ())):
        _compare(fixture, store, tmp_path, bytes(changed))


def _compare(fixture: Fixture, store: WriteStore, path: Path, expected: bytes) -> None:
    if fixture.name.endswith("#v2"):
        return
    for key, data in store.objects.items():
        (path / key).parent.mkdir(parents=True, exist_ok=True)
        (path / key).write_bytes(data)
    found = READERS["zarr-python"](path)
    dtype = np.dtype(found.dtype).newbyteorder("<")
    if found.dtype.kind not in "mMOTSUV":
        assert found.astype(dtype).tobytes() == expected
