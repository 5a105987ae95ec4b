"""Arrays of every kind, written by the other implementations: every view is exact."""

from collections.abc import Callable
from pathlib import Path

import pytest

from .choices import FACTORS, spec_of
from .covering import Row, pairwise, sample
from .deviations import cannot_write
from .peers import WRITERS
from .served_files import DirectFiles
from .serving import check_served

ROWS = sample(
    pairwise(
        {"writer": list(WRITERS), **FACTORS},
        lambda row: cannot_write(row["writer"], spec_of(row)) is None,
    )
)


@pytest.mark.soak
@pytest.mark.parametrize("row", ROWS, ids=lambda row: "-".join(map(str, row.values())))
def test_array(row: Row, tmp_path: Path, open_direct: Callable[[object], DirectFiles]) -> None:
    spec = spec_of(row)
    data = spec.data(seed=0)
    array = tmp_path / "array"
    WRITERS[row["writer"]](array, spec, data)
    check_served(open_direct(array), spec, data)


def test_every_choice_is_made() -> None:
    """No choice falls out of the combinations because all who write it were ruled out."""
    for factor, choices in FACTORS.items():
        assert {row[factor] for row in ROWS} == set(choices)
