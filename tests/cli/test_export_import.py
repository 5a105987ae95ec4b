"""``zarrfs export`` and ``zarrfs import`` as a person runs them: files, pipes, a terminal."""

import io
import json
import os
import re
import signal
import subprocess
import threading
import time
from pathlib import Path

import numpy as np
import pytest
import zarr

from tests.cli.terminal import run_in_terminal
from tests.conftest import COMMAND
from tests.fs.documents import CRC32C, LITTLE, array_document
from zarrfs.library.transfer.output_file import output

NUMBERS = np.arange(40 * 30 * 50, dtype="<u4").reshape(40, 30, 50)
LAYOUTS = {
    "plain": {"chunks": (7, 10, 50)},
    "small": {"chunks": (40, 5, 9)},
    "sharded": {"chunks": (5, 5, 10), "shards": (20, 15, 30)},
}


def make(path: Path, kind: str, *, data: bool = True) -> Path:
    array = zarr.create_array(path, shape=NUMBERS.shape, dtype=NUMBERS.dtype, **LAYOUTS[kind])
    if data:
        array[...] = NUMBERS
    return path


@pytest.fixture(params=("small", "sharded"))
def source(request, tmp_path: Path) -> Path:
    return make(tmp_path / "source.zarr", request.param)


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    return make(tmp_path / "plain.zarr", "plain")


def piped(*arguments: str | Path, data: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [*COMMAND, *map(str, arguments)], input=data, capture_output=True, timeout=60, check=False
    )


def stored(path: Path) -> np.ndarray:
    return np.asarray(zarr.open_array(path, mode="r")[...])


@pytest.mark.parametrize("name", ["a.zarr", "a.png", "a.npz", "a.bin.gz", "dir.bin/a.xyz"])
def test_an_extension_that_no_format_has_is_refused(plain, tmp_path, run, name):
    target = tmp_path / name
    target.parent.mkdir(exist_ok=True)
    result = run("export", plain, target)
    extension = name.rpartition(".")[2]
    assert result.status == 2
    assert f"no format has the extension .{extension}: " in result.stderr
    assert not target.exists()
    assert run("export", "--format", "bin", plain, target).status == 0
    assert target.read_bytes() == NUMBERS.tobytes()


@pytest.mark.parametrize("name", ["a", ".hidden", "a.raw", "dir.zarr/a", "a.DAT"])
def test_names_of_bare_elements(plain, tmp_path, run, name):
    target = tmp_path / name
    target.parent.mkdir(exist_ok=True)
    assert run("export", plain, target).status == 0
    assert target.read_bytes() == NUMBERS.tobytes()


# --- there and back -------------------------------------------------------------


def test_a_file_holds_the_array_and_fills_another(source, tmp_path, done):
    done("export", source, tmp_path / "a.bin")
    assert (tmp_path / "a.bin").read_bytes() == NUMBERS.tobytes()
    target = make(tmp_path / "t.zarr", "sharded", data=False)
    done("import", tmp_path / "a.bin", target)
    assert np.array_equal(stored(target), NUMBERS)
    done("export", source, tmp_path / "a.npy", "--memory", "16M")
    assert np.array_equal(np.load(tmp_path / "a.npy", mmap_mode="r"), NUMBERS)


def test_any_order_through_pipes(source, tmp_path):
    expected = NUMBERS.astype(">u4").tobytes(order="F")
    options = ("--order", "F", "--byteorder", "big", "--memory", "16M")
    out = piped("export", source, "-", *options)
    assert (out.returncode, out.stderr, out.stdout == expected) == (0, b"", True)
    target = make(tmp_path / "t.zarr", "sharded", data=False)
    back = piped("import", "-", target, *options, data=expected)
    assert (back.returncode, back.stderr) == (0, b"")
    assert np.array_equal(stored(target), NUMBERS)


def test_npy_in_order_f_tells_its_own_order(plain, tmp_path):
    out = piped("export", plain, "-", "--format", "npy", "--order", "F", "--byteorder", "big")
    loaded = np.load(io.BytesIO(out.stdout))
    assert (loaded.dtype, loaded.flags.f_contiguous) == (">u4", True)
    assert np.array_equal(loaded, NUMBERS)
    target = make(tmp_path / "t.zarr", "plain", data=False)
    back = piped("import", "-", target, "--format", "npy", data=out.stdout)
    assert (back.returncode, back.stderr) == (0, b"")
    assert np.array_equal(stored(target), NUMBERS)


def test_a_region(tmp_path, done):
    source = make(tmp_path / "source.zarr", "sharded")
    done("export", source, tmp_path / "r.npy", "--region", "3:20,-10:,7")
    part = np.load(tmp_path / "r.npy")
    assert np.array_equal(part, NUMBERS[3:20, -10:, 7])
    np.save(tmp_path / "r.npy", part + 1)
    done("import", tmp_path / "r.npy", source, "--region", "3:20,-10:,7")
    expected = NUMBERS.copy()
    expected[3:20, -10:, 7] += 1
    assert np.array_equal(stored(source), expected)


def test_a_target_that_is_created(tmp_path, done, failed):
    np.save(tmp_path / "x.npy", NUMBERS)
    done("import", "--create", tmp_path / "x.npy", tmp_path / "new.zarr")
    assert np.array_equal(stored(tmp_path / "new.zarr"), NUMBERS)
    failed(1, "import", "--create", tmp_path / "x.npy", tmp_path / "new.zarr")
    assert "NPY" in failed(2, "import", "--create", tmp_path / "x.bin", tmp_path / "y.zarr")


def test_an_array_below_a_group(tmp_path, failed):
    zarr.create_group(tmp_path / "h")
    make(tmp_path / "h" / "g" / "a", "plain")
    for arguments in ([tmp_path / "h" / "g" / "a"], [tmp_path / "h", "--path", "g/a"]):
        out = piped("export", *arguments, "-")
        assert out.stdout == NUMBERS.tobytes()
    assert "not an array; it has a" in failed(2, "export", tmp_path / "h", "-", "--path", "g")


@pytest.mark.parametrize("shape", [(), (0, 5), (1,)])
def test_arrays_of_no_or_one_element(tmp_path, shape, done):
    numbers = np.full(shape, 3, "f8")
    zarr.create_array(tmp_path / "a", data=numbers)
    zarr.create_array(tmp_path / "b", shape=shape, dtype="f8")
    done("export", tmp_path / "a", tmp_path / "a.npy")
    assert np.load(tmp_path / "a.npy").shape == shape
    done("import", tmp_path / "a.npy", tmp_path / "b")
    assert np.array_equal(stored(tmp_path / "b"), numbers)


def test_what_an_element_is_matters(tmp_path, done, failed):
    """A struct keeps its fields' names, and bfloat16 has no NPY form."""
    root = tmp_path / "bf"
    root.mkdir()
    (root / "zarr.json").write_bytes(array_document((3,), (2,), data_type="bfloat16"))
    assert "bfloat16" in failed(1, "export", root, tmp_path / "x.npy")
    done("export", root, tmp_path / "x.bin")
    assert not (tmp_path / "x.npy").exists()
    struct = np.zeros(5, [("a", "<i2"), ("b", "<f4")])
    struct["a"] = range(5)
    for name, data in (("s", struct), ("t", np.zeros_like(struct))):
        zarr.create_array(tmp_path / name, data=data, zarr_format=2)
    done("export", tmp_path / "s", tmp_path / "s.npy")
    assert np.array_equal(np.load(tmp_path / "s.npy"), struct)
    done("import", tmp_path / "s.npy", tmp_path / "t")
    assert np.array_equal(stored(tmp_path / "t"), struct)


def test_strings_have_no_flat_form(tmp_path, failed):
    zarr.create_array(tmp_path / "s", data=np.array(["a"], np.dtypes.StringDType()))
    assert "no fixed size" in failed(1, "export", tmp_path / "s", tmp_path / "x")


def test_a_fifo_is_written_as_it_is(plain, tmp_path, done):
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    found = []
    reader = threading.Thread(target=lambda: found.append(fifo.read_bytes()))
    reader.start()
    done("export", plain, fifo)
    reader.join(30)
    assert found == [NUMBERS.tobytes()]


# --- what does not fit ----------------------------------------------------------


def test_what_does_not_fit_is_refused_before_anything_is_written(plain, tmp_path, failed):
    before = stored(plain)
    (tmp_path / "short.bin").write_bytes(NUMBERS.tobytes()[:-1])
    (tmp_path / "long.bin").write_bytes(NUMBERS.tobytes() + b"\0")
    np.save(tmp_path / "shape.npy", NUMBERS[:39])
    np.save(tmp_path / "type.npy", NUMBERS.astype("f4"))
    np.save(tmp_path / "object.npy", np.array([{}]), allow_pickle=True)
    (tmp_path / "bad.npy").write_bytes(b"\x93NUMPY\1\0\x10\0garbage")
    cut = b"{'descr': '<f4', 'shape': ("
    (tmp_path / "cut.npy").write_bytes(b"\x93NUMPY\1\0" + len(cut).to_bytes(2, "little") + cut)
    for name, words in (
        ("cut.npy", "no NPY file"),
        ("short.bin", "has 239999 bytes, the array of [40, 30, 50] needs 240000"),
        ("long.bin", "has 240001 bytes"),
        ("shape.npy", "of shape [39, 30, 50], not [40, 30, 50]"),
        ("type.npy", "holds float32, the array uint32"),
        ("object.npy", "Python objects"),
        ("bad.npy", "no NPY file"),
    ):
        assert words in failed(2, "import", tmp_path / name, plain)
    assert "no such file" in failed(1, "import", tmp_path / "none", plain).lower()
    assert np.array_equal(stored(plain), before)


def test_a_stream_that_ends_early_or_late_is_an_error(plain):
    short = piped("import", "-", plain, data=NUMBERS.tobytes()[:-5])
    assert (short.returncode, b"ends after 239995 bytes" in short.stderr) == (1, True)
    late = piped("import", "-", plain, data=NUMBERS.tobytes() + b"x")
    assert (late.returncode, b"goes on after the 240000 bytes" in late.stderr) == (1, True)


@pytest.mark.parametrize(
    "region", ["0:41", "5:3", "a:b", "::", "40", "0,0,0,0", "-41", "0:1,0:1,0:51"]
)
def test_regions_that_are_none(plain, region, failed):
    assert "region" in failed(2, "export", plain, "-", f"--region={region}")


def test_elements_that_are_none_are_refused(tmp_path):
    zarr.create_array(tmp_path / "b", shape=(4,), dtype="bool")
    result = piped("import", "-", tmp_path / "b", data=b"\0\1\2\1")
    assert (result.returncode, b"bool" in result.stderr) == (1, True)


def test_an_existing_file_is_not_replaced_unawares(plain, tmp_path, done, failed):
    file = tmp_path / "x"
    file.write_bytes(b"precious")
    file.chmod(0o640)
    assert "--overwrite" in failed(1, "export", plain, file)
    assert file.read_bytes() == b"precious"
    done("export", plain, file, "--overwrite")
    assert file.read_bytes() == NUMBERS.tobytes()
    assert file.stat().st_mode & 0o777 == 0o640
    assert "is a directory" in failed(1, "export", plain, tmp_path)


def test_a_bad_chunk_leaves_no_file_behind(tmp_path, failed):
    root = tmp_path / "a"
    (root / "c").mkdir(parents=True)
    (root / "zarr.json").write_bytes(array_document((4,), (2,), codecs=[LITTLE, CRC32C]))
    (root / "c" / "1").write_bytes(bytes(8))
    file = tmp_path / "out" / "x"
    file.parent.mkdir()
    file.write_bytes(b"old")
    assert "c/1: CRC-32C" in failed(1, "export", root, file, "--overwrite")
    assert [path.name for path in file.parent.iterdir()] == ["x"]
    assert file.read_bytes() == b"old"
    (root / "c" / "1").unlink()
    assert "not stored" in failed(1, "export", root, file, "--overwrite", "--no-fill-missing")


def test_a_full_disk_is_one_line(plain, failed):
    """/dev/full is a device, so written as it is."""
    assert "No space left on device" in failed(1, "export", plain, "/dev/full")


def test_a_file_system_without_room_is_found_out_before(plain, tmp_path, failed):
    small = tmp_path / "small"
    small.mkdir()
    subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=100k", "tmpfs", small], check=True, timeout=30
    )
    try:
        assert "no room: needs 240000 bytes" in failed(1, "export", plain, small / "x")
        assert list(small.iterdir()) == []
    finally:
        subprocess.run(["umount", small], check=True, timeout=30)


def test_nobody_reads_any_more(plain):
    command = f"{' '.join(COMMAND)} export {plain} - | head -c 10; exit ${{PIPESTATUS[0]}}"
    # Larger than a pipe holds.
    result = subprocess.run(["bash", "-c", command], capture_output=True, timeout=60, check=False)
    assert (result.returncode, result.stderr) == (141, b"")
    assert result.stdout == NUMBERS.tobytes()[:10]


# --- going on -------------------------------------------------------------------


@pytest.fixture
def large(tmp_path: Path) -> tuple[Path, np.ndarray]:
    """Tiles of 1 MiB with the least memory, of which one chunk each can be made bad."""
    numbers = np.arange(40 << 18, dtype="<u4")
    path = tmp_path / "large.zarr"
    zarr.create_array(path, data=numbers, chunks=(1 << 18,), compressors=None)
    return path, numbers


def test_an_export_goes_on_where_it_stopped(large, tmp_path, done, failed):
    path, numbers = large
    file = tmp_path / "out" / "x.npy"
    file.parent.mkdir()
    bad = path / "c" / "30"
    whole = bad.read_bytes()
    bad.write_bytes(whole[:-1])
    arguments = ("export", "--resume", "--memory", "16M", path, file)
    part, state = (file.parent / f"x.npy.zarrfs-part{end}" for end in ("", ".json"))
    # One that was killed before it noted anything left a file, of more bytes than come now.
    part.write_bytes(b"x")
    os.truncate(part, 2 * numbers.nbytes)
    assert "c/30" in failed(1, *arguments)
    noted = json.loads(state.read_text())["done"]
    assert 20 <= noted <= 30
    # What is there already is not read again.
    (path / "c" / "0").write_bytes(b"")
    assert "another export" in failed(1, *arguments, "--byteorder", "big")
    bad.write_bytes(whole)
    done(*arguments)
    assert np.array_equal(np.load(file), numbers)
    assert file.stat().st_size == numbers.nbytes + 128
    assert not part.exists()
    assert not state.exists()


def test_an_interrupted_import_goes_on_and_writes_only_what_differs(large, tmp_path, done):
    path, numbers = large
    numbers.tofile(tmp_path / "x.bin")
    numbers[5 << 18 : 6 << 18] += 1
    array = zarr.open_array(path, mode="r+")
    array[5 << 18 : 6 << 18] = numbers[5 << 18 : 6 << 18]
    before = {file: file.stat().st_mtime_ns for file in (path / "c").iterdir()}
    done("import", "--resume", "--memory", "16M", tmp_path / "x.bin", path)
    changed = {f.name for f, mtime in before.items() if f.stat().st_mtime_ns != mtime}
    assert "5" in changed
    assert len(changed) <= 4
    assert stored(path).tobytes() == (tmp_path / "x.bin").read_bytes()
    # What cannot be read is written anew.
    (path / "c" / "7").write_bytes(b"torn")
    done("import", "--resume", "--memory", "16M", tmp_path / "x.bin", path)
    assert stored(path).tobytes() == (tmp_path / "x.bin").read_bytes()


def test_a_signal_while_the_file_is_made_leaves_nothing(tmp_path, monkeypatch):
    real = os.open

    def interrupted(*arguments, **keywords):
        os.close(real(*arguments, **keywords))
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "open", interrupted)
    made = output(str(tmp_path / "x"), 10, {}, resume=False, overwrite=False)
    with pytest.raises(KeyboardInterrupt), made:
        pass
    assert list(tmp_path.iterdir()) == []


def test_an_interrupted_export_leaves_nothing(large, tmp_path):
    path, _ = large
    out = tmp_path / "out"
    out.mkdir()
    # A signal may come between a checked lock and the note of who has it, as both are Python code.
    environment = {name: text for name, text in os.environ.items() if name != "ZARRFS_DEBUG_LOCKS"}
    slow = subprocess.Popen(
        [*COMMAND, "export", path, out / "x"],
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        env=environment,
    )
    give_up = time.monotonic() + 30
    while not list(out.iterdir()) and slow.poll() is None and time.monotonic() < give_up:
        time.sleep(0.001)
    slow.send_signal(signal.SIGINT)
    _, said = slow.communicate(timeout=30)
    if slow.returncode:  # it was not faster than the signal
        assert (slow.returncode, said.strip()) == (130, b"zarrfs: interrupted")
        assert list(out.iterdir()) == []
    else:
        assert [file.name for file in out.iterdir()] == ["x"]


# --- on a terminal --------------------------------------------------------------


def test_a_line_on_a_terminal_tells_how_far_it_is(large, tmp_path):
    path, _ = large
    status, shown = run_in_terminal("export", path, tmp_path / "x.bin", "--memory", "16M")
    assert status == 0
    text = re.sub(r"\x1b\[[?]25[lh]", "", shown)
    lines = [line for line in re.split(r"[\r\n]+", text) if line.strip()]
    assert re.match(r"export  \[#+\]  100%  40 MiB of 40 MiB", lines[-1])
    assert all(len(line) <= 100 for line in lines)
    assert shown.endswith("\n")
    status, shown = run_in_terminal("import", tmp_path / "x.bin", path)
    assert (status, "import  [" in shown, "100%" in shown) == (0, True, True)
    status, shown = run_in_terminal("export", path, tmp_path / "x.bin")
    assert status == 1
    assert shown.strip() == f"zarrfs: {tmp_path / 'x.bin'}: exists; --overwrite replaces it"
