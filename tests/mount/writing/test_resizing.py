"""``-o resize`` as the kernel and programs see it."""

import errno
import mmap
import os
import warnings
from pathlib import Path

import numpy as np
import pytest
import zarr

from tests.conftest import run_program, run_shell
from tests.mount.arrays import FILL, Target, make_array, stored

OPTIONS = "rw,resize"
ROW = 50 * 40 * 2


@pytest.fixture
def both(tmp_path: Path) -> Target:
    """A sharded array beside its group's consolidated metadata."""
    target = make_array(tmp_path / "group.zarr", "a", "sharded")
    consolidate(target.group)
    return target


def consolidate(group: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        zarr.consolidate_metadata(group)


def rows(count: int, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 1 << 16, (count, 50, 40), np.uint16)


def expect(target: Target, path: Path, expected: np.ndarray) -> None:
    """All views, other implementations and consolidated metadata agree."""
    assert path.stat().st_size == expected.nbytes
    assert path.read_bytes() == expected.tobytes()
    npy = np.load(path.with_suffix(".npy"), mmap_mode="r")
    assert npy.shape == expected.shape
    assert np.array_equal(npy, expected)
    del npy
    assert np.array_equal(stored(target.group / target.name), expected)
    group = zarr.open_consolidated(target.group)
    assert group[target.name].shape == expected.shape


APPENDS = {
    "cat": 'cat "$new" >> "$file"',
    "two in one shell": '{ head -c 5001 "$new"; tail -c +5002 "$new"; } >> "$file"',
    "dd": 'dd if="$new" of="$file" bs=3001 oflag=append conv=notrunc',
    "dd with seek": 'dd if="$new" of="$file" bs=1000 seek=$end oflag=seek_bytes conv=notrunc,fsync',
    "tee": 'tee -a "$file" < "$new" > /dev/null',
    "python": "python3 -c \"import os; f = open(os.environ['file'], 'ab');"
    "f.write(open(os.environ['new'], 'rb').read())\"",
}


def test_programs_that_append(mounted, both, tmp_path):
    file = mounted(both.group, OPTIONS) / "a" / "array.bin"
    expected = both.data
    for number, (name, line) in enumerate(APPENDS.items()):
        more = rows(number + 1, number)
        (tmp_path / "new").write_bytes(more.tobytes())
        done = run_shell(line, new=tmp_path / "new", file=file, end=expected.nbytes)
        assert done.returncode == 0, (name, done.stderr)
        expected = np.concatenate([expected, more])
        expect(both, file, expected)
    # The file has the size of what came, and the array at fsync a row that is begun.
    more = rows(2)
    with open(file, "ab", buffering=0) as out:
        for start in range(0, 2 * ROW, 999):
            out.write(more.tobytes()[start : start + 999])
            size = min(start + 999, 2 * ROW)
            assert os.fstat(out.fileno()).st_size == expected.nbytes + size
            if start % 5 == 0:
                os.fsync(out.fileno())
                shape = zarr.open_array(both.group / "a", mode="r").shape[0]
                assert shape == len(expected) + -(-size // ROW)
    expected = np.concatenate([expected, more])
    expect(both, file, expected)
    # A row that is begun is filled up at close.
    for number in range(3):
        done = run_shell('printf abcd >> "$file"; stat -c %s "$file"', file=file)
        assert done.stdout.split() == [str(expected.nbytes + (number + 1) * ROW)], done
    more = np.full((3, 50, 40), FILL, np.uint16)
    more.reshape(3, -1)[:, :2] = np.frombuffer(b"abcd", "<u2")
    expect(both, file, np.concatenate([expected, more]))


def test_copying_over_it(mounted, both, tmp_path):
    file = mounted(both.group, OPTIONS) / "a" / "array.bin"
    for count, line in (
        (75, 'cp "$new" "$file"'),
        (12, 'dd if="$new" of="$file" bs=7001'),
        (33, 'rsync --inplace "$new" "$file"'),
        (80, 'cat "$new" > "$file"'),
        (5, 'rsync --inplace --no-whole-file -I "$new" "$file"'),
    ):
        expected = rows(count, count)
        (tmp_path / "new").write_bytes(expected.tobytes())
        done = run_shell(line, new=tmp_path / "new", file=file)
        assert done.returncode == 0, (line, done.stderr)
        expect(both, file, expected)
    expected, npy = rows(71), file.with_suffix(".npy")
    np.save(npy, expected)
    expect(both, file, expected)
    # What is begun by truncating is a whole row of fill value at once.
    os.truncate(npy, 128 + 72 * ROW + 1)
    assert npy.stat().st_size == 128 + 73 * ROW
    expect(both, file, np.concatenate([expected, np.full((2, 50, 40), FILL, np.uint16)]))
    os.truncate(npy, 128)
    expect(both, file, expected[:0])


def test_mappings_see_growth_and_write_into_it(mounted, both):
    directory = mounted(both.group, OPTIONS) / "a"
    more = rows(2)
    with open(directory / "array.bin", "r+b") as file, mmap.mmap(file.fileno(), 0) as mapped:
        mapped[:4] = b"wxyz"
        os.ftruncate(file.fileno(), 62 * ROW)
        assert mapped[:4] == b"wxyz"
        mapped.resize(62 * ROW)
        mapped[60 * ROW :] = more.tobytes()
        mapped.flush()
        mapped[100:104] = b"abcd"
    expected = np.concatenate([both.data, more])
    flat = expected.reshape(-1).view(np.uint8)
    flat[:4] = list(b"wxyz")
    flat[100:104] = list(b"abcd")
    expect(both, directory / "array.bin", expected)
    grown = np.load(directory / "array.npy", mmap_mode="r+")
    grown[61, 49, 39] = 4242
    grown.flush()
    del grown
    expected[61, 49, 39] = 4242
    expect(both, directory / "array.bin", expected)

    # Rows that are given up under a mapping: a bus error, as on any file system.
    file = directory / "array.bin"
    program = (
        "import mmap, os, sys; f = open(sys.argv[1], 'r+b'); m = mmap.mmap(f.fileno(), 0);"
        "print(m[-1] >= 0, flush=True); os.ftruncate(f.fileno(), 0); m[-1]"
    )
    done = run_program("python3", "-c", program, file)
    assert (done.returncode, done.stdout) == (-7, "True\n")
    expect(both, file, both.data[:0])


def test_chunk_files_come_and_go(mounted, both):
    directory = mounted(both.group, OPTIONS) / "a"
    assert not (directory / "chunks/8").exists()
    os.truncate(directory / "array.bin", 90 * ROW)
    assert sorted(map(int, os.listdir(directory / "chunks"))) == list(range(9))
    os.truncate(directory / "array.bin", 10 * ROW)
    assert os.listdir(directory / "chunks") == ["0"]
    assert os.listdir(directory / "shards") == ["0"]
    chunk = np.fromfile(directory / "chunks/0/0/0", "<u2").reshape(10, 10, 10)
    assert np.array_equal(chunk, both.data[:10, :10, :10])
    assert not [name for name in both.files() if name.startswith("c/1")]
    with pytest.raises(OSError) as caught:
        os.truncate(directory / "array.bin", 2**63 - 1)
    assert caught.value.errno == errno.EFBIG
    expect(both, directory / "array.bin", both.data[:10])


def test_versions_2_and_1_too(mounted, tmp_path):
    group = zarr.open_group(tmp_path / "group.zarr", mode="w", zarr_format=2)
    data = np.arange(60, dtype="<i4").reshape(12, 5)
    group.create_array("a", shape=data.shape, chunks=(5, 2), dtype="<i4", fill_value=-1)[...] = data
    zarr.consolidate_metadata(tmp_path / "group.zarr", zarr_format=2)
    file = mounted(tmp_path / "group.zarr", OPTIONS) / "a" / "array.bin"
    with open(file, "ab") as out:
        out.write(data.tobytes() + b"\1")
    expected = np.concatenate([data, data, np.full((1, 5), -1)])
    expected[24, 0] = -255
    assert np.fromfile(file, "<i4").tolist() == expected.reshape(-1).tolist()
    found = zarr.open_consolidated(tmp_path / "group.zarr", zarr_format=2)["a"]
    assert np.array_equal(found[...], expected)
