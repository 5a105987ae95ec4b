"""Arrays that other people's software wrote: ``array.bin`` has the hash their readers agree on."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.interop import fixtures
from tests.interop.fixtures import Fixture, refusal
from tests.interop.served_files import DirectFiles, MountedFiles, ServedFiles
from zarrfs.errors import ZarrfsError

FIXTURES = fixtures.load()
GROUP = {"zarr_format": 3, "node_type": "group", "attributes": {}}
DOCUMENTS = {"zarr.json", ".zgroup", ".zarray", "meta"}

pytestmark = pytest.mark.skipif(not FIXTURES, reason=f"no fixtures at {fixtures.ROOT}")


@pytest.mark.parametrize(
    "fixture",
    [pytest.param(fixture, id=fixture.name) for fixture in FIXTURES if refusal(fixture)],
)
def test_refused(fixture: Fixture, open_direct: Callable[[object], DirectFiles]) -> None:
    with pytest.raises(ZarrfsError, match=str(refusal(fixture))):
        open_direct(fixture.source)


def test_undecided() -> None:
    """Says which arrays are compared with nothing, because no reader could decode them."""
    undecided = [f.name for f in FIXTURES if not f.hash and refusal(f) is None]
    if undecided:
        pytest.skip(f"no reader can tell what these hold: {', '.join(undecided)}")


@pytest.fixture
def one_group(tmp_path: Path) -> Path:
    """A group that has all fixtures below it, as links."""
    root = tmp_path / "group"
    _link(fixtures.ROOT, root)
    return root


def _link(directory: Path, place: Path) -> None:
    if any((directory / name).is_file() for name in DOCUMENTS):
        place.symlink_to(directory)
        return
    place.mkdir()
    (place / "zarr.json").write_text(json.dumps(GROUP))
    for child in directory.iterdir():
        if child.is_dir():
            _link(child, place / child.name)


@pytest.mark.mount
def test_all_in_one_group(one_group: Path, mounted: Callable[..., Path]) -> None:
    """What is refused shows its metadata and the reason, and does not harm the others."""
    # What is refused is counted, and told in the log.
    all_files = MountedFiles(mounted(one_group, "follow_symlinks", quiet=False))
    wrong = []
    for fixture in FIXTURES:
        if fixture.name.endswith("#v2"):
            # Of two documents in one directory, zarr.json decides unless told otherwise.
            continue
        if (reason := refusal(fixture)) is not None:
            document = all_files.read(f"{fixture.path}/zarr.json")
            right = document == (fixture.source / "zarr.json").read_bytes()
            right &= reason in all_files.read(f"{fixture.path}/zarrfs-note.txt").decode()
            right &= "array.bin" not in all_files.names(fixture.path)
        else:
            right = not fixture.hash or _matches(fixture, all_files)
        if not right:
            wrong.append(fixture.name)
    assert not wrong


@pytest.mark.mount
def test_v2_beside_v3(tmp_path: Path, mounted: Callable[..., Path]) -> None:
    """Of two documents in one directory, the option decides."""
    root = tmp_path / "group"
    root.mkdir()
    (root / ".zgroup").write_text('{"zarr_format": 2}')
    both = [fixture for fixture in FIXTURES if fixture.name.endswith("#v2")]
    assert both
    for number, fixture in enumerate(both):
        assert (fixture.source / "zarr.json").is_file()
        (root / str(number)).symlink_to(fixture.source)
    files = MountedFiles(mounted(root, "follow_symlinks", "zarr_format=2"))
    for number, fixture in enumerate(both):
        assert fixture.matches(files.read(f"{number}/{fixture.view}")), fixture.name
        assert {".zarray"} <= set(files.names(str(number)))
        assert "zarr.json" not in files.names(str(number))


def test_every_version_is_there() -> None:
    """Below one group, all three are mounted together."""
    served = {fixture.version for fixture in FIXTURES if refusal(fixture) is None}
    assert served == {1, 2, 3}


def _matches(fixture: Fixture, files: ServedFiles) -> bool:
    return fixture.matches(files.read(f"{fixture.path}/{fixture.view}"))


ZIPPED = {
    "manzt__zarrita.js/fixtures/v3/data.zipped_from_within.zarr.zip": "",
    "manzt__zarrita.js/fixtures/v3/data.uncompressed.zarr.zip": "",
    "manzt__zarrita.js/fixtures/v3/data.zipped_from_parent.zarr.zip": "data.zarr",
}
"""Zip files, with where in them is what the directory beside them holds."""


@pytest.mark.parametrize(("archive", "inside"), ZIPPED.items())
@pytest.mark.parametrize("chained", [False, True])
def test_zipped(
    archive: str, inside: str, chained: bool, open_direct: Callable[[object], DirectFiles]
) -> None:
    path = fixtures.ROOT / archive
    if inside and not chained:
        pytest.skip("a path of an archive opens its root, and the group is below")
    files = open_direct(f"zip://{inside}::file://{path}" if chained else path)
    unzipped = "manzt__zarrita.js/fixtures/v3/data.zarr/"
    compared = [f for f in FIXTURES if f.name.startswith(unzipped)]
    assert compared
    names = files.names("")
    for fixture in compared:
        name = fixture.path.removeprefix(unzipped)
        if name.split("/")[0] in names:
            assert fixture.matches(files.read(f"{name}/{fixture.view}")), name
