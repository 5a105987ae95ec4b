"""Chunk shapes against TensorStore itself, which is asked to create each array in memory."""

import os
from collections.abc import Iterator
from random import Random

import pytest
import tensorstore as ts

from zarrfs.format.chunk_grid import Shape
from zarrfs.format.making.chunk_choice import (
    ChunkConstraints,
    choose_chunk,
    choose_chunks,
    nearest_divisor,
)

# Always the same ones, unless more are asked for.
_EXAMPLES = int(os.environ.get("ZARRFS_EXAMPLES", "0"))
_SEED = None if _EXAMPLES else 1

FREE = ChunkConstraints()


def chosen_by_tensorstore(shape, driver="zarr3", **constraints):
    """Shapes of read and write chunks; None where it finds a contradiction."""
    layout = {}
    for name, asked in constraints.items():
        member = layout[name] = {}
        for kind, wish in (("shape", False), ("shape_soft_constraint", True)):
            lengths = [n if (a in asked.about) is wish else 0 for a, n in enumerate(asked.lengths)]
            if any(lengths):
                member[kind] = lengths
        if asked.elements is not None:
            member["elements"] = asked.elements
        if asked.aspect_ratio:
            member["aspect_ratio"] = list(asked.aspect_ratio)
    spec = {
        "driver": driver,
        "kvstore": {"driver": "memory"},
        "schema": {"dtype": "uint8", "domain": {"shape": list(shape)}, "chunk_layout": layout},
    }
    try:
        array = ts.open(spec, create=True, context=ts.Context()).result()
    except ValueError:
        return None
    chunks = array.chunk_layout
    return tuple(chunks.read_chunk.shape or ()), tuple(chunks.write_chunk.shape or ())


def chosen(shape, read, write):
    try:
        return choose_chunks(shape, read, write)
    except ValueError:
        return None


def random_constraints(random: Random, rank: int) -> ChunkConstraints:
    def lengths() -> list[int]:
        kinds = (0, 0, 0, -1, 1, 2, 12, 96, random.randrange(1, 200), random.randrange(1, 2000))
        return [random.choice(kinds) for _ in range(rank)]

    def ratios() -> list[float]:
        kinds = (0, 1, 1, 2, 3, 0.1, 10 * random.random())
        return [random.choice(kinds) for _ in range(rank)]

    elements = (None, None, 1, *(random.randrange(1, most) for most in (1000, 10**6, 10**9)))
    return ChunkConstraints(
        lengths() if random.random() < 0.5 else (),
        frozenset(axis for axis in range(rank) if random.random() < 0.4),
        random.choice(elements),
        ratios() if random.random() < 0.4 else (),
    )


def random_requests(count: int) -> Iterator[tuple[Shape, ChunkConstraints, ChunkConstraints]]:
    random = Random(_SEED)
    for _ in range(count):
        # TensorStore takes seconds to find the divisors of longer ones.
        longest = random.choices((1, 50, 5000, 10**5), k=random.randrange(5))
        shape = tuple(random.randrange(most + 1) for most in longest)
        rank = len(shape)
        yield shape, random_constraints(random, rank), random_constraints(random, rank)


def test_read_and_write_chunks_are_those_of_tensorstore():
    kinds = set()
    for shape, read, write in random_requests(_EXAMPLES or 2000):
        theirs = chosen_by_tensorstore(shape, read_chunk=read, write_chunk=write)
        assert chosen(shape, read, write) == theirs, (shape, read, write)
        kinds.add("contradiction" if theirs is None else theirs[0] == theirs[1])
    assert kinds == {"contradiction", True, False}


def test_chunks_of_version_2_are_those_of_tensorstore():
    for shape, asked, _ in random_requests(_EXAMPLES or 500):
        theirs = chosen_by_tensorstore(shape, "zarr", chunk=asked)
        assert theirs is not None
        assert choose_chunk(shape, asked) == theirs[1], (shape, asked)


def test_axes_of_any_length():
    for exponent in (20, 31, 40, 50, 61):
        for shape in ((2**exponent,), (3, 2**exponent - 1), (2**exponent, 7, 1000)):
            for elements in (None, 1000, 2**exponent):
                asked = ChunkConstraints(elements=elements)
                theirs = chosen_by_tensorstore(shape, chunk=asked)
                assert choose_chunks(shape, asked, asked) == theirs, (shape, elements)


@pytest.mark.parametrize(
    ("shape", "read", "write", "expected"),
    [
        ((1000, 2000, 3000), FREE, FREE, ((101,) * 3,) * 2),
        (
            (1000, 2000, 3000),
            ChunkConstraints(elements=2 * 10**6, aspect_ratio=(2, 1, 1)),
            ChunkConstraints(elements=10**9),
            ((200, 100, 100), (1000, 1000, 1000)),
        ),
        ((17, 5000000), FREE, FREE, ((17, 61680),) * 2),
        (
            (100,) * 4,
            ChunkConstraints(elements=50000, aspect_ratio=(1, 2, 3, 4)),
            ChunkConstraints(elements=50000, aspect_ratio=(1, 2, 3, 4)),
            ((6, 13, 20, 27),) * 2,
        ),
        (
            (1000,) * 3,
            ChunkConstraints(elements=10**5),
            ChunkConstraints((960, 0, 0), elements=10**8),
            ((48, 45, 45), (960, 315, 315)),
        ),
        (
            (30000, 20000, 64),
            ChunkConstraints(elements=32768),
            ChunkConstraints(elements=2**28),
            ((32,) * 3, (2048, 2048, 64)),
        ),
        ((0, 10), FREE, FREE, ((1, 10),) * 2),
        ((), FREE, FREE, ((), ())),
    ],
)
def test_known_choices(shape, read, write, expected):
    assert choose_chunks(shape, read, write) == expected


def test_the_whole_axis_and_the_rest():
    asked = ChunkConstraints((1, 0), elements=10**5)
    assert choose_chunks((4096, 4096), asked, asked) == ((1, 4096), (1, 4096))
    asked = ChunkConstraints((-1, 7))
    assert choose_chunks((5, 100), asked, asked) == ((5, 7), (5, 7))


@pytest.mark.parametrize(
    ("read", "write", "reason"),
    [
        (ChunkConstraints((3,)), ChunkConstraints((7,)), "axis 0: shards of 7"),
        (ChunkConstraints((3, 4)), FREE, "2 chunk lengths for 1 axes"),
        (ChunkConstraints((-2,)), FREE, "-2 is not a valid chunk length"),
        (ChunkConstraints(aspect_ratio=(1, 2)), FREE, "2 aspect ratios for 1 axes"),
        (ChunkConstraints(aspect_ratio=(-1,)), FREE, "aspect ratio"),
        (ChunkConstraints(elements=0), FREE, "chunks of 0 elements"),
        (ChunkConstraints((1,)), ChunkConstraints((2**31,)), "a shard of 2147483648 chunks"),
    ],
)
def test_contradictions(read, write, reason):
    with pytest.raises(ValueError, match=reason):
        choose_chunks((1000,), read, write)


def test_nearest_divisor_of_what_is_too_large_to_factor():
    assert nearest_divisor(2**50, 1000) == 1024
    assert nearest_divisor(2**61 - 1, 1000) == 1
    assert nearest_divisor(2**61 - 1, 2**40) == 2**61 - 1
