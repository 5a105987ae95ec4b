"""When a mount for everybody shows what the store keeps from them."""

import pytest

from tests.fs.documents import array_document
from zarrfs.daemon.mount import mount
from zarrfs.daemon.options.option_parser import parse_options
from zarrfs.daemon.request import MountRequest
from zarrfs.daemon.source.checks import shows_private


@pytest.fixture
def source(tmp_path):
    source = tmp_path / "a.zarr"
    source.mkdir(0o755)
    (source / "zarr.json").write_bytes(array_document((1,), (1,)))
    (source / "zarr.json").chmod(0o644)
    for below in (source / "g", source / "g/a"):
        below.mkdir(0o755)
        (below / "zarr.json").touch(0o644)
    return source


@pytest.mark.parametrize(
    ("options", "name", "mode", "told"),
    [
        ("allow_other", "zarr.json", 0o600, True),
        ("allow_other", ".", 0o700, True),
        ("allow_other", "zarr.json", 0o644, False),
        ("allow_other,umask=077", "zarr.json", 0o600, False),
        ("allow_root", "zarr.json", 0o600, False),
        ("rw", "zarr.json", 0o600, False),
        ("allow_other,path=g/a", "g", 0o700, True),
        ("allow_other,path=g/a", "g/zarr.json", 0o600, True),
        ("allow_other,path=g", "g/a", 0o700, False),
    ],
)
def test_told_where_others_see_more_than_the_store_shows(source, options, name, mode, told):
    (source / name).chmod(mode)
    found = shows_private(str(source), parse_options([options]))
    assert found == (str(source / name) if told else None)


def test_the_mount_command_warns(source, tmp_path, capsys):
    (source / "zarr.json").chmod(0o600)
    (tmp_path / "mnt").mkdir()
    request = MountRequest(
        source=str(source),
        mount_point=str(tmp_path / "mnt"),
        options=parse_options(["allow_other"]),
        storage_options={},
        foreground=True,
    )
    mount(request, serve=lambda request, launch: None)
    assert f"warning: other users cannot read {source}/zarr.json" in capsys.readouterr().err
