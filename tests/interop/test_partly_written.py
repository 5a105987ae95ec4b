"""Regions written one after another, with the rest never written."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from .choices import GRIDS, KEYS
from .data_types import FILLS, random_elements
from .documents import array_bytes, gzip
from .peers import WRITERS
from .served_files import DirectFiles
from .serving import check_served
from .shardings import SHARDINGS
from .spec import Spec

REGIONS = (
    (slice(3, 5), slice(0, 1), slice(2, 9)),
    (slice(6, 7), slice(8, 9), slice(10, 11)),
    (slice(0, 2), slice(3, 8), slice(7, 8)),
    (slice(3, 4), slice(0, 9), slice(4, 5)),
)


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("sharding", ["none", "end", "start", "nested", "transposed_between"])
def test_partly_written(
    writer: str,
    sharding: str,
    tmp_path: Path,
    open_direct: Callable[[object], DirectFiles],
) -> None:
    grid = GRIDS["ragged_3d"]
    spec = Spec(
        "int16",
        FILLS["int16"][3],
        shape=grid.shape,
        stored=grid.stored,
        inner=grid.stored if sharding == "none" else (2, 3, 2),
        keys=KEYS["default."],
        codecs=tuple(SHARDINGS[sharding]((2, 6, 4), (2, 3, 2), [array_bytes(), gzip()])),
    )
    written = random_elements("int16", grid.shape, np.random.default_rng(0))
    data = spec.filled(grid.shape)
    for region in REGIONS:
        data[region] = written[region]
    array = tmp_path / "array"
    WRITERS[writer](array, spec, data, REGIONS)
    check_served(open_direct(array), spec, data)
