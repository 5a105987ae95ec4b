"""Fill values in every form, bit for bit, where no chunk is stored."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.interop.data_types import FILLS, Fill
from tests.interop.deviations import cannot_read
from tests.interop.documents import array_bytes, chunk_keys, sharding
from tests.interop.peers import READERS
from tests.interop.served_files import DirectFiles
from tests.interop.serving import check_served
from tests.interop.spec import Spec

CASES = [(data_type, fill) for data_type, fills in FILLS.items() for fill in fills]


def spec_of(data_type: str, fill: Fill) -> Spec:
    return Spec(
        data_type,
        fill,
        shape=(7, 5),
        stored=(4, 4),
        inner=(2, 2),
        keys=chunk_keys("default", "/"),
        codecs=(sharding((2, 2), [array_bytes()]),),
    )


@pytest.mark.parametrize(
    ("data_type", "fill"), CASES, ids=[f"{data_type}-{fill.name}" for data_type, fill in CASES]
)
def test_nothing_stored(
    data_type: str, fill: Fill, tmp_path: Path, open_direct: Callable[[object], DirectFiles]
) -> None:
    spec = spec_of(data_type, fill)
    (tmp_path / "zarr.json").write_text(json.dumps(spec.document))
    data = spec.filled(spec.shape)
    check_served(open_direct(tmp_path), spec, data)
    for reader, read in READERS.items():
        if cannot_read(reader, spec) is None:
            assert read(tmp_path).tobytes() == data.tobytes(), reader
