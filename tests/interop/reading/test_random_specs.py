"""Arrays of random shapes, chunks, shards and codecs, written by each implementation."""

import tempfile
from contextlib import closing
from pathlib import Path

from hypothesis import assume, given
from hypothesis import strategies as st

from tests.interop.choices import CHAINS, KEYS
from tests.interop.data_types import FILLS, NUMPY
from tests.interop.deviations import cannot_read, cannot_write
from tests.interop.peers import READERS, WRITERS
from tests.interop.served_files import DirectFiles
from tests.interop.serving import check_served
from tests.interop.shardings import SHARDINGS
from tests.interop.spec import Spec
from tests.soak import examples

bounded = examples(100)


@st.composite
def specs(draw: st.DrawFn) -> Spec:
    rank = draw(st.integers(0, 5))
    most = (0, 40, 12, 7, 5, 4)[rank]

    def lengths(low: int, high: int) -> tuple[int, ...]:
        return tuple(draw(st.lists(st.integers(low, high), min_size=rank, max_size=rank)))

    inner = lengths(1, 4)
    middle = tuple(i * n for i, n in zip(inner, lengths(1, 3), strict=True))
    stored = tuple(m * n for m, n in zip(middle, lengths(1, 2), strict=True))
    data_type = draw(st.sampled_from(list(NUMPY)))
    fill = draw(st.sampled_from(FILLS[data_type]))
    sharding = draw(st.sampled_from(list(SHARDINGS)))
    size = len(fill.bits)
    chain = CHAINS[draw(st.sampled_from(list(CHAINS)))](rank, size)
    return Spec(
        data_type,
        fill,
        shape=lengths(0, most),
        stored=stored,
        inner=stored if sharding == "none" else inner,
        keys=KEYS[draw(st.sampled_from(list(KEYS)))],
        codecs=tuple(SHARDINGS[sharding](middle, inner, chain)),
    )


@bounded
@given(
    spec=specs(),
    writer=st.sampled_from(list(WRITERS)),
    seed=st.integers(0, 2**32 - 1),
    missing=st.sampled_from([0.0, 0.3, 1.0]),
)
def test_random_spec(spec: Spec, writer: str, seed: int, missing: float) -> None:
    data = spec.data(seed, missing)
    assume(cannot_write(writer, spec, data) is None)
    with tempfile.TemporaryDirectory() as directory:
        array = Path(directory) / "array"
        WRITERS[writer](array, spec, data)
        with closing(DirectFiles(str(array))) as files:
            check_served(files, spec, data)
        for reader, read in READERS.items():
            if cannot_read(reader, spec) is None:
                assert read(array).astype(spec.dtype).tobytes() == data.tobytes(), reader
