"""``-o overlay``: changes stay in a directory until they are committed."""

import json
import os
import shutil
import warnings
from contextlib import suppress

import numpy as np
import pytest
import zarr

from tests.conftest import run_zarrfs
from tests.fs.fault_store import Call, FaultStore
from tests.store.conftest import serve_http
from zarrfs.daemon.source.opening import COMPARISON
from zarrfs.errors import StoreChanged, StoreConflict, StoreError, StoreReadOnly, StoreTooLarge
from zarrfs.store.base import ANY, StoreTraits
from zarrfs.store.open import StoreConfig, open_store
from zarrfs.store.wrappers.overlay import OverlayStore
from zarrfs.store.wrappers.wrapper import StoreWrapper

DATA = np.arange(60, dtype="<i4").reshape(6, 10)


def make(path, dtype="i4", **more):
    zarr.create_array(path, shape=DATA.shape, chunks=(2, 10), dtype=dtype, **more)[...] = DATA
    return path


def state(path):
    return {str(p): p.read_bytes() for p in sorted(path.rglob("*")) if p.is_file()}


def change(mount, row, value):
    with open(mount / "array.bin", "r+b") as file:
        file.seek(row * DATA[0].nbytes)
        file.write(np.full_like(DATA[0], value).tobytes())


@pytest.mark.parametrize("more", [{}, {"shards": (4, 10)}])
def test_changes_are_kept_apart_and_committed(mount_daemon, tmp_path, more):
    source, overlay = make(tmp_path / "a.zarr", **more), tmp_path / "overlay"
    before, options = state(source), ("rw", f"overlay={overlay}", "allow_remove", "resize")
    daemon = mount_daemon(source, *options)
    change(daemon.path, 1, 7)
    (daemon.path / "chunks/2/0").unlink()
    with open(daemon.path / "array.bin", "ab") as file:
        file.write(DATA[0].tobytes())
    assert state(source) == before
    daemon.umount()
    # The next mount has them, and one without the overlay does not.
    wanted = np.vstack([DATA, DATA[:1]])
    wanted[1], wanted[4:6] = 7, 0
    daemon = mount_daemon(source, *options)
    assert (daemon.path / "array.bin").read_bytes() == wanted.tobytes()
    assert np.array_equal(zarr.open_array(daemon.path, mode="r"), wanted)
    assert (mount_daemon(source).path / "array.bin").read_bytes() == DATA.tobytes()
    listed = run_zarrfs("diff", daemon.path)
    assert listed.returncode == 0
    lines = listed.stdout.splitlines()
    assert {line.split()[1] for line in lines} >= {"zarr.json", "c/0/0"}
    told = json.loads(run_zarrfs("diff", "--json", daemon.path).stdout)
    assert told["objects"] == len(lines) == len(told["changes"])
    done = run_zarrfs("commit", daemon.path)
    assert (done.returncode, done.stderr) == (0, "")
    assert np.array_equal(zarr.open_array(source), wanted)
    assert (daemon.path / "array.bin").read_bytes() == wanted.tobytes()
    assert json.loads(run_zarrfs("diff", "--json", daemon.path).stdout)["objects"] == 0
    # And on with the next change.
    change(daemon.path, 6, 9)
    assert zarr.open_array(source)[6, 0] == 0
    assert run_zarrfs("commit", daemon.path).returncode == 0
    assert zarr.open_array(source)[6, 0] == 9


def test_what_the_source_changed_too_stays(mount_daemon, tmp_path):
    source, overlay = make(tmp_path / "a.zarr"), tmp_path / "overlay"
    daemon = mount_daemon(source, "rw", f"overlay={overlay}")
    change(daemon.path, 0, 7)
    change(daemon.path, 2, 8)
    zarr.open_array(source)[1] = 99
    done = run_zarrfs("commit", daemon.path)
    assert done.returncode == 1
    assert done.stdout == "1 object stored, 0 removed\n"
    assert done.stderr == "zarrfs: not stored: c/0/0: was changed in the source, too\n"
    assert zarr.open_array(source)[:4, 0].tolist() == [0, 99, 8, 30]
    assert np.load(daemon.path / "array.npy")[:3, 0].tolist() == [7, 10, 8]


def test_changes_of_an_array_that_is_made_anew_in_the_source(mount_daemon, tmp_path):
    """Its chunks would mean other numbers there."""
    source, options = tmp_path / "g.zarr", ("rw", f"overlay={tmp_path / 'overlay'}")
    zarr.create_group(source)
    make(source / "b")

    def make_a(dtype):
        shutil.rmtree(source / "a", ignore_errors=True)
        zarr.create_array(source / "a", shape=DATA.shape, chunks=(2, 10), dtype=dtype)

    make_a("<i4")
    daemon = mount_daemon(source, *options)
    change(daemon.path / "a", 3, 7)
    change(daemon.path / "b", 3, 8)
    daemon.umount()
    make_a("<f4")
    daemon = mount_daemon(source, *options, quiet=False)
    assert not (daemon.path / "a/array.bin").exists()
    note = (daemon.path / "a/zarrfs-note.txt").read_text()
    assert "has changed how the array is encoded" in note
    done = run_zarrfs("commit", daemon.path)
    assert (done.returncode, done.stdout) == (1, "1 object stored, 0 removed\n")
    assert done.stderr.startswith("zarrfs: not stored: a/c/1/0: another program has changed how")
    assert (zarr.open_array(source / "b")[3] == 8).all()
    assert not zarr.open_array(source / "a")[:].any()
    daemon.umount()
    # As it was, with other attributes.
    make_a("<i4")
    zarr.open_array(source / "a").attrs["x"] = 1
    daemon = mount_daemon(source, *options)
    assert np.load(daemon.path / "a/array.npy")[3, 0] == 7
    assert run_zarrfs("commit", daemon.path).returncode == 0
    assert (zarr.open_array(source / "a")[3] == 7).all()
    daemon.umount()
    # What the overlay does not hold any more is no matter.
    make_a("<f4")
    assert not np.load(mount_daemon(source, *options).path / "a/array.npy").any()


def test_changes_of_an_array_that_is_made_anew_meanwhile(mount_daemon, tmp_path):
    source = tmp_path / "a.zarr"
    zarr.create_array(source, shape=DATA.shape, chunks=(2, 10), dtype="<i4")
    daemon = mount_daemon(source, "rw", f"overlay={tmp_path / 'overlay'}", "recheck=always")
    change(daemon.path, 3, 7)
    zarr.create_array(source, shape=DATA.shape, chunks=(2, 10), dtype="<f4", overwrite=True)
    with pytest.raises(OSError, match="Input/output error"):
        (daemon.path / "array.bin").read_bytes()
    assert run_zarrfs("commit", daemon.path).returncode == 1
    assert not zarr.open_array(source)[:].any()


@pytest.mark.parametrize("removed", [False, True])
def test_rows_that_the_source_has_since_are_not_hidden(mount_daemon, tmp_path, removed):
    """Those in an object that the overlay changed or removed would read as the fill value."""
    source, options = tmp_path / "a.zarr", ("rw", f"overlay={tmp_path / 'overlay'}", "allow_remove")
    array = zarr.create_array(source, shape=(7, 10), chunks=(2, 10), dtype="<i4")
    array[:5] = DATA[:5]
    daemon = mount_daemon(source, *options)
    change(daemon.path, 0, 7)
    daemon.umount()
    # It has been as large as it will be, but not when the overlay gets the last row.
    array.resize((5, 10))
    daemon = mount_daemon(source, *options)
    if removed:
        (daemon.path / "chunks/2/0").unlink()
    else:
        change(daemon.path, 4, 8)
    daemon.umount()
    # Rows in objects that only the source changes are seen.
    array.resize((7, 10))
    array[6] = 66
    daemon = mount_daemon(source, *options)
    found = np.load(daemon.path / "array.npy")[:, 0].tolist()
    assert found == [7, 10, 20, 30, 0 if removed else 8, 0, 66]
    daemon.umount()
    array[5] = 55
    daemon = mount_daemon(source, *options, quiet=False)
    assert np.fromfile(daemon.path / "chunks/3/0", "<i4")[0] == 66
    with pytest.raises(OSError, match="Input/output error"):
        (daemon.path / "chunks/2/0").read_bytes()
    assert run_zarrfs("commit", daemon.path).returncode == 1
    assert zarr.open_array(source)[:, 0].tolist() == [7, 10, 20, 30, 40, 55, 66]
    inner, upper = _store(source), _store(tmp_path / "overlay")
    overlay = OverlayStore(inner, upper, str(source), ["zarr.json"], COMPARISON)
    assert overlay.get("zarr.json", limit=1 << 20) is not None
    with pytest.raises(StoreChanged, match=r"^c/2/0: another program has made the array larger"):
        overlay.put("c/2/0", [b"new"], expected=ANY)
    with pytest.raises(StoreChanged, match=r"^c/2/0: another program has made the array larger"):
        overlay.delete("c/2/0", expected=ANY)


def test_another_size_of_an_array_that_is_made_anew_in_the_source(mount_daemon, tmp_path):
    """Its metadata would give chunks of the source another meaning, also in a mount that has it."""
    source, options = tmp_path / "g.zarr", ("rw", "resize", f"overlay={tmp_path / 'overlay'}")
    zarr.create_group(source)

    def make_a(dtype):
        shutil.rmtree(source / "a", ignore_errors=True)
        make(source / "a", dtype=dtype, compressors=None)

    make_a("<i4")
    daemon = mount_daemon(source, *options, "recheck=always", quiet=False)
    os.truncate(daemon.path / "a/array.bin", 2 * DATA.nbytes)
    wanted = np.vstack([DATA, np.zeros_like(DATA)])
    assert (daemon.path / "a/array.bin").read_bytes() == wanted.tobytes()
    make_a("<f4")
    with pytest.raises(OSError, match="Input/output error"):
        (daemon.path / "a/array.bin").read_bytes()
    daemon.umount()
    daemon = mount_daemon(source, *options, quiet=False)
    assert "has changed how the array" in (daemon.path / "a/zarrfs-note.txt").read_text()
    assert run_zarrfs("commit", daemon.path).returncode == 1
    daemon.umount()
    make_a("<i4")
    daemon = mount_daemon(source, *options)
    assert (daemon.path / "a/array.bin").read_bytes() == wanted.tobytes()


@pytest.mark.parametrize("whose", ["a", ""])
def test_a_smaller_array_is_committed_as_a_whole_or_not_at_all(mount_daemon, tmp_path, whose):
    """Or else rows that the source still has would be fill value."""
    source = tmp_path / "g.zarr"
    group = zarr.create_group(source)
    make(source / "a")
    make(source / "b")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of version 3 not having them yet
        zarr.consolidate_metadata(source)
    daemon = mount_daemon(source, "rw", "resize", f"overlay={tmp_path / 'overlay'}")
    os.truncate(daemon.path / "a/array.bin", DATA[:1].nbytes)
    change(daemon.path / "b", 3, 8)
    node = source / whose / "zarr.json"
    node.write_bytes(node.read_bytes() + b"\n")
    before = state(source / "a")
    done = run_zarrfs("commit", daemon.path)
    assert (done.returncode, done.stdout) == (1, "1 object stored, 0 removed\n")
    name = str(node.relative_to(source))
    assert f"not stored: {name}: was changed in the source, too\n" in done.stderr
    assert f"not stored: a/c/1/0: belongs with {name}, which is not stored\n" in done.stderr
    assert state(source / "a") == before
    assert (group["b"][3] == 8).all()


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_another_size_below_consolidated_metadata_is_committed(mount_daemon, tmp_path, zarr_format):
    source = tmp_path / "g.zarr"
    zarr.create_group(source, zarr_format=zarr_format)
    make(source / "a", zarr_format=zarr_format)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of version 3 not having them yet
        zarr.consolidate_metadata(source)
    daemon = mount_daemon(source, "rw", "resize", f"overlay={tmp_path / 'overlay'}")
    os.truncate(daemon.path / "a/array.bin", DATA[:3].nbytes)
    done = run_zarrfs("commit", daemon.path)
    assert (done.returncode, done.stderr) == (0, "")
    assert np.array_equal(zarr.open_consolidated(source)["a"], DATA[:3])


def test_over_a_source_that_nobody_can_write_to(mount_daemon, tmp_path):
    source = make(tmp_path / "a.zarr")
    with serve_http() as server:
        for name, data in state(source).items():
            server.objects[name.removeprefix(str(tmp_path))] = data
        daemon = mount_daemon(f"{server.url}/a.zarr", "rw", f"overlay={tmp_path / 'o'}")
        change(daemon.path, 3, 5)
        # Not by numpy, which keeps the server in this process from answering.
        wanted = DATA.copy()
        wanted[3] = 5
        assert (daemon.path / "array.bin").read_bytes() == wanted.tobytes()
        done = run_zarrfs("commit", daemon.path)
        assert (done.returncode, done.stderr.count("\n")) == (1, 1)
        assert "plain HTTP has no way to write" in done.stderr
        daemon.umount()


def test_what_is_refused(mount_daemon, tmp_path):
    source, other = make(tmp_path / "a.zarr"), make(tmp_path / "b.zarr")
    mount = tmp_path / "m"
    mount.mkdir()
    open_to_all = tmp_path / "open"
    open_to_all.mkdir()
    open_to_all.chmod(0o777)
    mount_daemon(other, f"overlay={tmp_path / 'of b'}").umount()
    for overlay, said in (
        (source / "o", f"lies in {source}"),
        (mount / "o", f"lies in {mount}"),
        (open_to_all, "other users can change"),
        (tmp_path / "of b", "holds changes to another source"),
    ):
        done = run_zarrfs("mount", source, mount, "-o", f"rw,overlay={overlay}")
        assert done.returncode in (1, 2), overlay
        assert done.stderr.count("\n") == 1
        assert said in done.stderr
    plain = mount_daemon(source, "rw")
    for command in ("diff", "commit"):
        assert "has no overlay" in run_zarrfs(command, plain.path).stderr


def _failing(inner, changes):
    """Stops a writer after so many changes."""
    store, left = FaultStore(inner), iter(range(changes))

    def stop(call):
        if call.operation in ("put", "delete") and next(left, None) is None:
            raise KeyboardInterrupt

    store.before = stop
    return store


def _store(path):
    path.mkdir(exist_ok=True)
    return open_store(str(path), StoreConfig())


def test_a_commit_that_is_cut_short_goes_on_later(tmp_path):
    """Wherever it stops, nothing is lost, and the next one ends it."""
    for calls in range(12):
        inner = _store(tmp_path / f"s{calls}")
        for key in ("k/changed", "k/removed", "k/both"):
            inner.put(key, [b"old"], expected=ANY)
        upper = _store(tmp_path / f"o{calls}")
        overlay = OverlayStore(inner, upper, "s")
        overlay.put("k/changed", [b"new"], expected=ANY)
        overlay.put("k/new", [b"new"], expected=None)
        overlay.delete("k/removed", expected=ANY)
        overlay.delete("k/both", expected=ANY)
        overlay.put("k/both", [b"new"], expected=None)
        assert list(overlay.list_dir("k")) == ["both", "changed", "new"]
        cut = OverlayStore(_failing(inner, calls), _failing(upper, calls), "s")
        with suppress(KeyboardInterrupt):
            cut.commit(100)
        for store in (overlay, OverlayStore(inner, upper, "s")):
            assert store.get("k/removed", limit=9) is None
            for key in ("k/changed", "k/new", "k/both"):
                assert bytes(store.get(key, limit=9).data) == b"new"
        done = overlay.commit(100)
        assert done.kept == {}
        assert list(overlay.changes()) == []
        assert sorted(inner.list_dir("k")) == ["both", "changed", "new"]
        assert bytes(inner.get("k/both", limit=9).data) == b"new"
        left = [p for p in (tmp_path / f"o{calls}").rglob("*") if p.is_file()]
        # Notes of states that nobody needs are all that may stay.
        kinds = {path.relative_to(tmp_path / f"o{calls}").parts[0] for path in left}
        assert kinds <= {"source.json", "before", ".zarrfs-tmp-0"}


def test_documents_that_have_no_changes_are_fetched_together(tmp_path):
    """Those of a group may be many, and the store far away."""
    inner = CountingStore(_store(tmp_path / "s"))
    nodes = [f"{number}" for number in range(9)]
    for node in nodes:
        make(tmp_path / "s" / node)
    overlay = OverlayStore(inner, _store(tmp_path / "o"), "s", ["zarr.json"], COMPARISON)
    overlay.put("4/c/0/0", [b""], expected=ANY)
    keys = [f"{node}/zarr.json" for node in nodes]
    for key, blob in zip(keys, overlay.get_many(keys, limit=1 << 20), strict=True):
        assert bytes(blob.data) == (tmp_path / "s" / key).read_bytes()
    assert inner.together == [[key for key in keys if not key.startswith("4/")]]


class CountingStore(StoreWrapper):
    """Knows which keys it was asked for at once."""

    def __init__(self, inner):
        super().__init__(inner)
        self.together = []

    def get_many(self, keys, *, limit):
        self.together.append(list(keys))
        return super().get_many(keys, limit=limit)


@pytest.mark.parametrize("then", ["put", "delete"])
def test_changes_after_a_commit_that_was_cut_short_are_committed(tmp_path, then):
    """Wherever it stopped: the store's object is the overlay's own, not another writer's."""
    for calls in range(18):
        inner = _store(tmp_path / f"s{calls}")
        for key in ("k/changed", "k/removed"):
            inner.put(key, [b"old"], expected=ANY)
        upper = _store(tmp_path / f"o{calls}")
        overlay = OverlayStore(inner, upper, "s")
        overlay.put("k/changed", [b"new"], expected=ANY)
        overlay.put("k/new", [b"new"], expected=None)
        overlay.delete("k/removed", expected=ANY)
        cut = OverlayStore(_failing(inner, calls), _failing(upper, calls), "s")
        with suppress(KeyboardInterrupt):
            cut.commit(100)
        for key in ("k/changed", "k/new", "k/removed"):
            if then == "put":
                overlay.put(key, [b"newer"], expected=ANY)
            else:
                overlay.delete(key, expected=ANY)
        assert overlay.commit(100).kept == {}, calls
        for key in ("k/changed", "k/new", "k/removed"):
            found = inner.get(key, limit=9)
            assert (found and bytes(found.data)) == (b"newer" if then == "put" else None)
        assert list(overlay.changes()) == []


@pytest.mark.parametrize("note", [b"", b"[{}]", b"[[1]]", b"7", b"null", b"[" * 5000])
def test_a_damaged_note_of_a_state_is_no_state(tmp_path, note):
    """What the source has is compared with what the commit stores."""
    inner, upper = _store(tmp_path / "s"), _store(tmp_path / "o")
    inner.put("k", [b"old"], expected=ANY)
    overlay = OverlayStore(inner, upper, "s")
    overlay.put("k", [b"new"], expected=ANY)
    upper.put("before/k", [note], expected=ANY)
    assert list(overlay.commit(100).kept) == ["k"]
    inner.put("k", [b"new"], expected=ANY)
    assert overlay.commit(100).kept == {}


@pytest.mark.parametrize("kept", [b"", b"{}", b"7", b"[" * 5000])
def test_a_damaged_document_of_an_array_says_nothing(tmp_path, kept):
    make(tmp_path / "s")
    inner, upper = _store(tmp_path / "s"), _store(tmp_path / "o")
    overlay = OverlayStore(inner, upper, "s", ["zarr.json"], COMPARISON)
    overlay.put("c/0/0", [b"new"], expected=ANY)
    upper.put("arrays/zarr.json", [kept], expected=ANY)
    assert overlay.get("zarr.json", limit=1 << 20) is not None
    assert overlay.commit(100).kept == {}
    assert bytes(inner.get("c/0/0", limit=9).data) == b"new"


@pytest.mark.parametrize("kind", ["changed", "removed"])
def test_a_change_during_a_commit_is_committed_later(tmp_path, kind):
    inner, upper = _store(tmp_path / "s"), _store(tmp_path / "o")
    inner.put("k", [b"old"], expected=ANY)
    overlay = OverlayStore(inner, upper, "s")
    if kind == "changed":
        overlay.put("k", [b"new"], expected=ANY)
    else:
        overlay.delete("k", expected=ANY)
    meanwhile = FaultStore(upper)

    def change(call):
        if call == Call("delete", f"{kind}/k") and meanwhile.calls.count(call) == 1:
            overlay.put("k", [b"newer"], expected=ANY)

    meanwhile.after = change
    OverlayStore(inner, meanwhile, "s").commit(100)
    assert overlay.commit(100).kept == {}
    assert bytes(inner.get("k", limit=9).data) == b"newer"


def test_states_are_compared(tmp_path):
    """A put must meet the state that it expects, in the overlay or below."""
    inner = _store(tmp_path / "s")
    old = inner.put("k", [b"old"], expected=None)
    overlay = OverlayStore(inner, _store(tmp_path / "o"), "s")
    with pytest.raises(StoreConflict):
        overlay.put("k", [b"new"], expected=None)
    first = overlay.put("k", [b"new"], expected=old.generation)
    for expected in (None, old.generation):
        with pytest.raises(StoreConflict, match=r"^k: "):
            overlay.put("k", [b"newer"], expected=expected)
    overlay.delete("k", expected=first.generation)
    assert overlay.info("k") is None
    assert bytes(inner.get("k", limit=9).data) == b"old"
    with pytest.raises(StoreConflict):
        overlay.put("k", [b"newer"], expected=old.generation)
    overlay.put("k", [b"newer"], expected=None)
    with pytest.raises(StoreError, match=r"^k: "):
        overlay.get("k", limit=1)


def test_mounts_that_begin_an_overlay_at_the_same_time(tmp_path):
    """Both have it; not a mount of another source."""
    inner, upper = _store(tmp_path / "s"), _store(tmp_path / "o")

    class Late(StoreWrapper):
        """Another mount begins the overlay after the first look."""

        def info(self, key):
            found = super().info(key)
            if key == "source.json" and found is None:
                OverlayStore(inner, upper, "s")
            return found

    first = OverlayStore(inner, Late(upper), "s")
    OverlayStore(inner, upper, "s").put("k", [b"new"], expected=None)
    assert bytes(first.get("k", limit=9).data) == b"new"
    shutil.rmtree(tmp_path / "o")
    with pytest.raises(StoreError, match="another source"):
        OverlayStore(inner, Late(_store(tmp_path / "o")), "t")


def test_an_overlay_of_a_store_that_is_read_only(tmp_path):
    inner = _store(tmp_path / "s")

    class ReadOnly(StoreWrapper):
        read_only = "it is"

    overlay = OverlayStore(ReadOnly(inner), _store(tmp_path / "o"), "s")
    overlay.put("k", [b"new"], expected=None)
    with pytest.raises(StoreReadOnly, match="it is"):
        overlay.commit(100)
    shutil.rmtree(tmp_path / "s")
    os.mkdir(tmp_path / "s")
    assert bytes(overlay.get("k", limit=9).data) == b"new"


def test_an_overlay_of_a_store_that_never_changes_changes(tmp_path):
    class Immutable(StoreWrapper):
        traits = StoreTraits(near=False, in_flight=7, immutable=True)

    overlay = OverlayStore(Immutable(_store(tmp_path / "s")), _store(tmp_path / "o"), "s")
    assert overlay.traits == StoreTraits(near=False, in_flight=7, immutable=False)


def test_unchanged_objects_are_asked_for_together(tmp_path):
    """A distant store fetches them at once; the others come from the overlay."""
    asked = []

    class Distant(StoreWrapper):
        def get_many(self, keys, *, limit):
            asked.append(list(keys))
            return super().get_many(keys, limit=limit)

    inner = _store(tmp_path / "s")
    for key in "abcde":
        inner.put(key, [key.encode()], expected=None)
    overlay = OverlayStore(Distant(inner), _store(tmp_path / "o"), "s")
    overlay.put("b", [b"new"], expected=ANY)
    overlay.put("z", [b"newer"], expected=None)
    overlay.delete("d", expected=ANY)
    found = list(overlay.get_many(["a", "b", "..", "c", "d", "none", "z", "e"], limit=4))
    assert asked == [["a", "c", "none", "e"]]
    assert [None if blob is None else bytes(blob.data) for blob in (*found[:2], *found[3:6])] == [
        *(b"a", b"new", b"c", None, None)
    ]
    assert [str(found[2].key), type(found[6]), bytes(found[7].data)] == ["..", StoreTooLarge, b"e"]
