"""Numbers that no machine has, from users and from services, as fuzzing found them."""

import pytest

from zarrfs import bounds
from zarrfs.cli.sizes import size_text
from zarrfs.daemon.options.option_parser import parse_options
from zarrfs.errors import UsageError
from zarrfs.store.remote.plain_reader import describe


@pytest.mark.parametrize("text", ["9" * 400, "9" * 400 + "G", "9999999999T"])
def test_more_memory_than_there_can_be(text):
    with pytest.raises(UsageError, match="is too large"):
        parse_options([f"memory={text}"])


@pytest.mark.parametrize(
    "when", [10**400, -(10**400), float("nan"), float("inf"), "0001-01-01T00:00:00", "9999-12-31"]
)
def test_a_service_that_tells_an_absurd_time(when):
    info, sized = describe({"size": 3, "mtime": when})
    assert (info.size, sized) == (3, True)
    assert info.mtime_ns is None or abs(info.mtime_ns) < 2**63 * 1000


@pytest.mark.parametrize("size", [-1, "3", [3], 0.5, float("nan")])
def test_a_service_that_tells_an_absurd_size(size):
    assert describe({"size": size})[0].size == 0
    assert describe({"size": size})[1] is False


@pytest.mark.parametrize("size", [1 << 70, 10**400, 1e300])
def test_a_size_that_no_unit_has(size):
    assert size_text(size) == "more than 1024 EiB"


@pytest.mark.parametrize(("text", "reason"), [
    (b" ", "it is empty"),
    (b'{"a": ', "its text ends or is wrong in line 1, column 7"),
    (b'{\n"a": 1 2}', "its text ends or is wrong in line 2, column 8"),
    (b'{"a": "\xb5m"}', "byte 7 is not UTF-8"),
    (b"[" * 10**5, "it is nested too deeply"),
])  # fmt: skip
def test_why_a_text_is_not_json(text, reason):
    with pytest.raises((ValueError, RecursionError)) as caught:
        bounds.load_json(text)
    assert bounds.why_not_json(text, caught.value) == reason
