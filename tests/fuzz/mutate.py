"""Random changes to bytes, to JSON and to text."""

import copy
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

_WORDS = (0, 1, 2, 3, 4, 7, 8, 16, 31, 64, 127, 128, 255, 256, 1 << 15, 1 << 16, (1 << 31) - 1,
          1 << 31, (1 << 32) - 1, 1 << 32, (1 << 63) - 1, 1 << 63, (1 << 64) - 1)  # fmt: skip
_VALUES: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2, 255, 2**31, 2**63 - 1, 2**63, 2**64, -(2**63), 10**30, 10**400,
    0.0, -0.0, 0.5, 1.0, 1e300, float("nan"), float("inf"), "", "a", "NaN", "Infinity", "0x00",
    "AAAA", "ü" * 50, "\ud800", "\0", "x" * 5000, [], [[]], [0], [1, 2, 3], [0] * 100, {}, {"": 0},
    {"name": "bytes"}, {"id": "zlib"}, ["bytes"], "float64", "<f8", "|O", "|S0", "|V100000000",
    "r80000000000", [["a", "<i4"], ["b", "|S3"]],
)  # fmt: skip


def mutated_bytes(random: Random, data: bytes, others: Sequence[bytes] = ()) -> bytes:
    """``data`` with one to four changes; parts may come from ``others``."""
    found = bytearray(data)
    for _ in range(random.choice((1, 1, 1, 2, 4))):
        random.choice(_BYTE_CHANGES)(random, found, others)
    return bytes(found)


def mutated_within(random: Random, data: bytes, ranges: Sequence[tuple[int, int]]) -> bytes:
    """``data`` with one to four bytes or numbers changed that lie in one of the ranges."""
    found = bytearray(data)
    sizes = [stop - start for start, stop in ranges]
    for _ in range(random.choice((1, 1, 1, 2, 4))):
        (start, stop), *_ = random.choices(ranges, sizes)
        # Zeros are mostly room that nobody reads.
        at = next((at for _ in range(4) if data[at := random.randrange(start, stop)]), start)
        part = found[at : at + random.choice((1, 1, 2, 4, 8))]
        random.choice((_flip, _set, _word))(random, part, ())
        found[at : at + len(part)] = part
    return bytes(found)


def _flip(random: Random, data: bytearray, others: Sequence[bytes]) -> None:
    if data:
        data[random.randrange(len(data))] ^= 1 << random.randrange(8)


def _set(random: Random, data: bytearray, others: Sequence[bytes]) -> None:
    if data:
        data[random.randrange(len(data))] = random.choice((0, 1, 127, 128, 254, 255))


def _word(random: Random, data: bytearray, others: Sequence[bytes]) -> None:
    """A number of 2, 4 or 8 bytes, mostly near the start or the end, where headers are."""
    size = random.choice((2, 4, 4, 4, 8))
    if len(data) < size:
        return
    last = len(data) - size
    at = random.choice((random.randint(0, min(last, 40)), random.randint(0, last), last))
    word = random.choice(_WORDS)
    if random.random() < 0.3:
        word = int.from_bytes(data[at : at + size], "little") + random.choice((-1, 1, 8, -8))
    order = "little" if random.random() < 0.8 else "big"
    data[at : at + size] = (word % (1 << 8 * size)).to_bytes(size, order)  # type: ignore[arg-type]


def _cut(random: Random, data: bytearray, others: Sequence[bytes]) -> None:
    del data[random.randint(0, len(data)) :]


def _extend(random: Random, data: bytearray, others: Sequence[bytes]) -> None:
    data += random.choice((b"\0", b"\xff", random.randbytes(8), bytes(data[:64]), bytes(200)))


def _remove(random: Random, data: bytearray, others: Sequence[bytes]) -> None:
    start = random.randint(0, len(data))
    del data[start : start + random.randint(1, 16)]


def _repeat(random: Random, data: bytearray, others: Sequence[bytes]) -> None:
    start = random.randint(0, len(data))
    part = bytes(data[start : start + random.randint(1, 32)])
    data[start:start] = part * random.choice((1, 2, 10))


def _splice(random: Random, data: bytearray, others: Sequence[bytes]) -> None:
    if others:
        other = random.choice(others)
        at = random.randint(0, min(len(data), len(other)))
        data[at:] = other[at:]


_BYTE_CHANGES: tuple[Callable[[Random, bytearray, Sequence[bytes]], None], ...] = (
    _flip, _flip, _set, _word, _word, _word, _cut, _extend, _remove, _repeat, _splice,
)  # fmt: skip


def mutated_json(random: Random, value: Any, others: Sequence[Any] = ()) -> Any:
    """``value`` with one to four of its parts replaced, removed, doubled or swapped."""
    found = copy.deepcopy(value)
    for _ in range(random.choice((1, 1, 2, 4))):
        places = list(_places(found))
        if not places:
            return random.choice(_VALUES)
        _change(random, *random.choice(places), places, others)
    return found


def _places(value: Any) -> Any:
    """All containers with a key or position in them."""
    if isinstance(value, dict | list):
        for key in list(value) if isinstance(value, dict) else range(len(value)):
            yield value, key
            yield from _places(value[key])


def _change(
    random: Random, holder: Any, key: Any, places: Sequence[Any], others: Sequence[Any]
) -> None:
    try:
        old = holder[key]
        match random.randrange(8):
            case 0:
                del holder[key]
            case 1:
                holder[key] = [old] * (
                    1000 if random.random() < 0.02 else random.choice((1, 2, 33))
                )
            case 2:
                source, place = random.choice(places)
                holder[key] = copy.deepcopy(source[place])
            case 3 if isinstance(old, int | float) and not isinstance(old, bool):
                holder[key] = random.choice(
                    (old + 1, old - 1, -old, old * 2, old * 10**9, str(old))
                )
            case 4 if isinstance(old, str):
                holder[key] = mutated_text(random, old)
            case 5 if isinstance(holder, dict):
                holder[random.choice((*holder, "", "configuration", "id", "name"))] = old
            case 6 if others:
                other, place = random.choice(list(_places(random.choice(others))))
                holder[key] = copy.deepcopy(other[place])
            case _:
                holder[key] = copy.deepcopy(random.choice(_VALUES))
    except (KeyError, IndexError, OverflowError):
        pass  # an earlier change took it away


def mutated_text(random: Random, text: str) -> str:
    """``text`` with characters changed, doubled, or taken away."""
    at = random.randint(0, len(text))
    part = random.choice(("", "0", "9" * 30, "::", "/", "..", "{{", "}}", "\0", "ü", "\ud800", "=",
                          ",", "-", "%", " ", "\n", text[at:], text[:at], text * 3))  # fmt: skip
    return text[:at] + part + text[at + random.choice((0, 1, 3)) :]
