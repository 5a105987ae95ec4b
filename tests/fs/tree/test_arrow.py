"""``group.arrow``: what is read of it, and when it is made anew."""

import numpy as np
import pytest
import zarr

from tests.cli.in_process import in_process
from tests.tables import CODES, COLUMNS, MISSING, NAME, make_table
from zarrfs.errors import EntryNotFound
from zarrfs.store.local.local import LocalStore


@pytest.fixture
def source(tmp_path):
    make_table(tmp_path / "g")
    return tmp_path / "g"


def test_the_file_of_export_and_of_any_request(source, mount, tmp_path):
    m = mount(source, views=(NAME,))
    data = m.read(NAME)
    assert m.read(NAME, 77) == data
    assert len(data) == m.stat(NAME).size
    done = in_process("export", source, tmp_path / "x", "--format", NAME)
    assert done.status == 0, done.stderr
    assert (tmp_path / "x").read_bytes() == data
    assert COLUMNS["u8"].tobytes() in data
    for valid in (MISSING != -9, ~np.isnat(COLUMNS["t"])):
        assert np.packbits(valid, bitorder="little").tobytes() in data
    # Codes of missing values are null, and no code then.
    assert CODES.clip(0).tobytes() in m.read(f"obs/{NAME}")
    with pytest.raises(EntryNotFound):
        mount(source, views=(NAME,), byteorder="big").stat(NAME)
    with pytest.raises(EntryNotFound):
        m.stat(f"empty/{NAME}")


def test_what_is_written_elsewhere_is_seen(source, opened):
    m = opened(LocalStore(source), views=("default", NAME))
    place = m.read(NAME).index(COLUMNS["u8"].tobytes())
    file = m.open(NAME)
    m.write("u8/array.bin", 8, b"\7" * 8)
    assert file.read(place, 24)[8:16] == b"\7" * 8


def test_columns_that_are_read_to_count_nulls(source, mount, monkeypatch):
    """Those that the file has, as long as all of them together are not too large."""
    brief = {"data": np.zeros(5, "i2"), "attributes": {"_FillValue": 0}}
    zarr.open_group(source).create_array("brief", **brief)
    read = []
    monkeypatch.setattr(
        "zarrfs.fs.nodes.group_files.count_equal",
        lambda elements, other: read.append(elements.count * len(other)) or 1,
    )
    most = COLUMNS["d"].nbytes + MISSING.nbytes
    monkeypatch.setattr("zarrfs.views.headers.arrow.file._MOST_COUNTED", most)
    data = mount(source, views=(NAME,)).read(NAME)
    assert read == [COLUMNS["d"].nbytes, MISSING.nbytes]
    assert b'["brief", "c", "short", "t", "two"]' in data
