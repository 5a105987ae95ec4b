"""dd, cp, cat, the shell, truncate, touch, rm and rsync change arrays in place."""

from pathlib import Path

import numpy as np
import pytest

from tests.conftest import run_shell
from tests.mount.arrays import FILL, other

SIZE = 240_000


@pytest.fixture
def new(sharded, tmp_path: Path) -> Path:
    """A file of other elements, as many as the array has."""
    path = tmp_path / "new"
    path.write_bytes(other(sharded.data).tobytes())
    return path


REPLACE = {
    "dd": 'dd if="$new" of="$file" bs=64K',
    "dd with an odd block": 'dd if="$new" of="$file" bs=3001',
    "dd with fsync": 'dd if="$new" of="$file" bs=1M conv=fsync',
    "dd without truncating": 'dd if="$new" of="$file" bs=10007 conv=notrunc',
    "cp": 'cp "$new" "$file"',
    "cp with times": 'cp --preserve=timestamps "$new" "$file"',
    "cat": 'cat "$new" > "$file"',
    "cat into a file that is not truncated": 'cat "$new" 1<> "$file"',
    "tee": 'tee "$file" < "$new" > /dev/null',
    "rsync": 'rsync --inplace -It "$new" "$file"',
    "rsync of differences": 'rsync --inplace --no-whole-file -Ia "$new" "$file"',
    "python": "python3 -c \"import os; open(os.environ['file'], 'wb')"
    ".write(open(os.environ['new'], 'rb').read())\"",
}


def test_programs_that_replace_everything(file, sharded, new):
    data = [new.read_bytes(), sharded.data.tobytes()]
    for number, (name, line) in enumerate(REPLACE.items()):
        expected = data[number % 2]
        new.write_bytes(expected)
        done = run_shell(line, new=new, file=file)
        assert done.returncode == 0, (name, done.stderr)
        assert sharded.stored().tobytes() == expected, name
        assert file.read_bytes() == expected, name


def test_dd_into_the_middle(file, sharded, new):
    expected = bytearray(sharded.data.tobytes())
    source = new.read_bytes()
    for size, skip, count in ((1, 77_777, 1), (512, 101, 33), (7001, 5, 20), (4096, 0, 3)):
        line = 'dd if="$new" of="$file" bs=$bs seek=$at skip=$at count=$count conv=notrunc'
        done = run_shell(line, new=new, file=file, bs=size, at=skip, count=count)
        assert done.returncode == 0, done.stderr
        place = slice(size * skip, size * (skip + count))
        expected[place] = source[place]
        assert sharded.stored().tobytes() == expected


def test_dd_from_the_mount_to_itself(file, sharded):
    """One view is read while another is written."""
    line = 'dd if="$file" of="$npy" bs=5000 seek=128 oflag=seek_bytes conv=notrunc,swab'
    assert run_shell(line, file=file, npy=file.with_suffix(".npy")).returncode == 0
    assert (sharded.stored() == sharded.data.byteswap()).all()


def test_sizes(file, sharded):
    assert run_shell('truncate -s 0 "$file" && truncate -s $size "$file"', file=file, size=SIZE)
    assert file.stat().st_size == SIZE
    for size in ("5", "+1", "1G"):
        done = run_shell('truncate -s $size "$file"', file=file, size=size)
        assert done.returncode == 1
        assert "Operation not permitted" in done.stderr
    assert (sharded.stored() == sharded.data).all()


def test_appending(file, sharded):
    done = run_shell('echo more >> "$file"', file=file)
    assert done.returncode == 1
    assert "File too large" in done.stderr
    done = run_shell('dd if=/dev/zero of="$file" bs=3000 seek=79 count=2 conv=notrunc', file=file)
    assert done.returncode == 1
    assert "File too large" in done.stderr
    expected = sharded.data.tobytes()[:-3000] + bytes(3000)
    assert sharded.stored().tobytes() == expected


def test_tools_that_rename_are_refused(file, sharded, new):
    for line in (
        'mv "$new" "$file"',
        'sed -i s/a/b/ "$file"',
        # Of the same size and perhaps of the same second, it may look like the same file.
        'rsync --ignore-times "$new" "$file"',
    ):
        assert run_shell(line, new=new, file=file).returncode != 0, line
    assert (sharded.stored() == sharded.data).all()


def test_touch(file):
    before = file.stat()
    assert run_shell('touch "$file" && touch -d 2001-01-01 "$file"', file=file).returncode == 0
    assert file.stat().st_mtime_ns == before.st_mtime_ns


REMOVING = (
    'rm -rf "$dir"/*',
    'rm -rf "$dir"/*/*',
    'rm "$dir"/*/chunks/0/0/0',
    'rm -r "$dir"/*/shards',
    'rmdir "$dir"/*/chunks/0/0',
    'mv "$dir"/*/chunks/0/0/0 "$dir"/*/chunks/0/0/1',
    'mv "$dir"/*/chunks/0 "$elsewhere"',
    'find "$dir" -delete',
)


def test_what_removes_changes_nothing_unless_that_is_allowed(mounted, sharded, tmp_path):
    def states():
        found = {name: (sharded.group / sharded.name / name).stat() for name in sharded.files()}
        return {name: (state.st_ino, state.st_mtime_ns) for name, state in found.items()}

    before = states()
    path = mounted(sharded.group, "rw")
    for line in REMOVING:
        done = run_shell(line, dir=path, elsewhere=tmp_path / "elsewhere")
        assert done.returncode != 0
        assert "Operation not permitted" in done.stderr
        assert (path / sharded.name / "array.bin").read_bytes() == sharded.data.tobytes()
        assert states() == before, line


@pytest.mark.parametrize("hide", [None, "chunks", "chunks,shards,npy"])
def test_copying_a_directory_copies_every_view_that_is_listed(mounted, sharded, tmp_path, hide):
    """As plain files, decoded, and none of them is a Zarr array."""
    options = () if hide is None else (f"hide={hide}",)
    path = mounted(sharded.group, *options) / sharded.name
    hidden = {"npy": "array.npy"}.get
    names = {"array.bin", "array.npy", "chunks", "shards"}
    names -= {hidden(name, name) for name in (hide or "").split(",")}
    for line in ('cp -r "$dir" "$copy"', 'rsync -a "$dir/" "$copy"'):
        copy = tmp_path / line.split()[0]
        done = run_shell(line, dir=path, copy=copy)
        assert done.returncode == 0, done.stderr
        assert {found.name for found in copy.iterdir()} & {"array.npy", "chunks", "shards"} == (
            names - {"array.bin"}
        )
        assert (copy / "array.bin").read_bytes() == sharded.data.tobytes()
        assert (copy / "zarr.json").read_bytes() == (path / "zarr.json").read_bytes()
        sizes = sum(found.stat().st_size for found in copy.rglob("*") if found.is_file())
        assert sizes >= len(names) * SIZE


def test_rm_of_chunks_and_shards(mounted, sharded):
    directory = mounted(sharded.group, "rw,allow_remove") / sharded.name
    expected = sharded.data.copy()
    assert run_shell('rm "$dir"/chunks/1/2/?', dir=directory).returncode == 0
    expected[10:20, 20:30] = FILL
    assert (sharded.stored() == expected).all()
    assert run_shell('rm "$dir"/shards/1/1/1', dir=directory).returncode == 0
    expected[30:60, 30:50, 20:40] = FILL
    assert (sharded.stored() == expected).all()
    # Nothing of it can be seen but through the elements: the files are still there.
    assert len(list((directory / "chunks/1/2").iterdir())) == 4
    assert np.fromfile(directory / "array.bin", np.uint16).tobytes() == expected.tobytes()


def test_cp_onto_a_chunk(file, sharded, tmp_path):
    chunk = tmp_path / "chunk"
    chunk.write_bytes(bytes(2000))
    done = run_shell('cp "$chunk" "$dir"/chunks/5/4/3', chunk=chunk, dir=file.parent)
    assert done.returncode == 0
    expected = sharded.data.copy()
    expected[50:60, 40:50, 30:40] = 0
    assert (sharded.stored() == expected).all()


def test_what_lies_beyond_the_array_is_stored_as_fill_value(mounted, tmp_path):
    """The last chunk of an axis reaches over its end: that part is accepted and dropped."""
    from tests.mount.arrays import make_array

    target = make_array(tmp_path / "other.zarr", "b", "plain")
    path = mounted(target.group, "rw") / target.name / "chunks/3/2/2"
    assert path.stat().st_size == 17 * 20 * 16 * 2
    done = run_shell('head -c 10880 /dev/zero > "$path"', path=path)
    assert done.returncode == 0, done.stderr
    expected = target.data.copy()
    expected[51:, 40:, 32:] = 0
    assert (target.stored() == expected).all()
    chunk = np.fromfile(path, np.uint16).reshape(17, 20, 16)
    assert (chunk[:9, :10, :8] == 0).all()
    chunk[:9, :10, :8] = FILL
    assert (chunk == FILL).all()
