"""Arrays of every kind, written by zarrfs: the other implementations read the same bits."""

import json
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from tests.fs.loop import Loop
from tests.fs.writable import Writable
from tests.interop.data_types import Fill
from tests.interop.deviations import cannot_read, cannot_write
from tests.interop.peers import READERS, WRITERS
from tests.interop.reading.test_random_specs import bounded, specs
from tests.interop.served_files import DirectFiles
from tests.interop.serving import check_served
from tests.interop.spec import Spec
from zarrfs.store.local.local import LocalStore


@contextmanager
def writable(loop: Loop, path: Path, **config: object) -> Iterator[Writable]:
    mount = Writable(loop, LocalStore(path), **config)
    try:
        yield mount
        assert mount.fs.drain() == []
        mount.write_back.budget.shrink()
        assert mount.write_back.budget.used == 0
    finally:
        mount.close()


def create(path: Path, spec: Spec) -> None:
    path.mkdir()
    (path / "zarr.json").write_text(json.dumps(spec.document))


# Of two chunks of one element each the first is NaN, with other bits than the fill value.
NAN_FOR_FILL = Spec(
    "float16",
    Fill("nan", "NaN", b"\x00\x7e"),
    shape=(1, 2),
    stored=(1, 1),
    inner=(1, 1),
    keys={"name": "default", "configuration": {"separator": "/"}},
    codecs=({"name": "bytes", "configuration": {"endian": "little"}},),
)


@bounded
@example(spec=NAN_FOR_FILL, writer="zarr-python", seed=1000, missing=0.0, store_fill=False)
@given(
    spec=specs(),
    writer=st.sampled_from([*WRITERS, "zarrfs"]),
    seed=st.integers(0, 2**32 - 1),
    missing=st.sampled_from([0.0, 0.3, 1.0]),
    store_fill=st.booleans(),
)
def test_parts_of_what_others_wrote(
    spec: Spec, writer: str, seed: int, missing: float, store_fill: bool
) -> None:
    data = spec.data(seed, missing)
    with tempfile.TemporaryDirectory() as directory, closing(Loop()) as loop:
        path = Path(directory) / "array"
        if writer != "zarrfs" and cannot_write(writer, spec, data) is None:
            WRITERS[writer](path, spec, data)
        else:
            create(path, spec)
            data = spec.filled(spec.shape)
        content = bytearray(data.tobytes())
        other = spec.data(seed + 1, missing).tobytes()
        random = np.random.default_rng(seed)
        with writable(loop, path, store_fill=store_fill) as mount:
            file = mount.edit("array.bin")
            for _ in range(4):
                start, stop = sorted(random.integers(0, len(content) + 1, 2).tolist())
                file.write(start, other[start:stop])
                content[start:stop] = other[start:stop]
            file.close()
        expected = np.frombuffer(bytes(content), spec.dtype).reshape(spec.shape)
        with closing(DirectFiles(str(path))) as files:
            check_served(files, spec, expected)
        for reader, read in READERS.items():
            if cannot_read(reader, spec) is None:
                found = read(path).astype(spec.dtype, copy=False)
                assert found.tobytes() == expected.tobytes(), reader
