"""ImageJ opens an array by the name of a file, on a screen that nobody sees."""

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import zarr

from tests.tools.programs import need_program, run
from tests.tools.samples import NAMES, values

pytestmark = pytest.mark.timeout(150)

JAR = Path("/usr/share/java/ij.jar")
PICTURES = os.environ.get("ZARRFS_PICTURES")
"""Where `make pictures` has the pictures of the documentation written."""


@pytest.fixture
def screen(tmp_path: Path) -> Iterator[str]:
    """The display of an X server of its own."""
    for program in ("Xvfb", "java"):
        need_program(program)
    if not JAR.exists():
        pytest.skip("the program imagej is not installed: make test-tools installs it")
    reading, writing = os.pipe()
    server = subprocess.Popen(
        ["Xvfb", "-displayfd", str(writing), "-screen", "0", "860x600x24", "-nolisten", "tcp"],
        pass_fds=[writing], stderr=subprocess.DEVNULL,
    )  # fmt: skip
    os.close(writing)
    try:
        with os.fdopen(reading) as number:
            yield f":{number.readline().strip()}"
    finally:
        server.terminate()
        server.wait(10)


@contextmanager
def imagej(screen: str, how: str, macro: Path) -> Iterator[subprocess.Popen[bytes]]:
    program = subprocess.Popen(
        ["java", "-cp", str(JAR), "ij.ImageJ", how, str(macro)],
        env=os.environ | {"DISPLAY": screen, "HOME": str(macro.parent)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    try:
        yield program
    finally:
        program.kill()
        program.communicate()


def test_it_opens_stacks_with_nothing_typed(screen, mounted, tmp_path):
    """Of the three types that it has; it saves them big-endian."""
    group = zarr.create_group(tmp_path / "g.zarr")
    for code in ("u1", "u2", "f4"):
        data = values(code, 3)
        group.create_array(code, data=data, chunks=(4, 4, 4), dimension_names=NAMES[3])
    mount = mounted(tmp_path / "g.zarr")
    lines = []
    for code in ("u1", "u2", "f4"):
        lines += [f'open("{mount}/{code}/array.tif");', "getDimensions(w, h, c, s, f);",
                  "print(w, h, c, s, f, bitDepth());",
                  f'saveAs("Raw Data", "{tmp_path}/{code}.raw");', "close();"]  # fmt: skip
    macro = tmp_path / "read.ijm"
    macro.write_text("\n".join([*lines, 'run("Quit");']))
    with imagej(screen, "-batch", macro) as program:
        said = program.communicate(timeout=100)[0].decode()
    depth, height, width = values("u1", 3).shape
    assert [line.split() for line in said.splitlines() if line[:1].isdigit()] == [
        [str(n) for n in (width, height, 1, depth, 1, bits)] for bits in (8, 16, 32)
    ]
    for code in ("u1", "u2", "f4"):
        found = np.fromfile(tmp_path / f"{code}.raw", f">{code}").reshape(values(code, 3).shape)
        np.testing.assert_array_equal(found, values(code, 3))


SIZES = {"t": 2, "z": 4, "c": 3, "y": 5, "x": 7}
STACKS = {
    # Channels, slices and frames that ImageJ shows.
    "tzcyx": (3, 4, 2),
    "zcyx": (3, 4, 1),
    "cyx": (3, 1, 1),
    "tyx": (1, 1, 2),
    # ImageJ has no such orders: it shows the planes as they lie.
    "czyx": (1, 12, 1),
    "tczyx": (1, 24, 1),
    "ctyx": (1, 6, 1),
}


def test_its_planes_are_those_of_the_array_in_any_order_of_axes(screen, mounted, tmp_path):
    """OME-Zarr has channels before depth; names, colours and ranges of channels are its."""
    lines = []
    data = {}
    for axes in STACKS:
        shape = tuple(SIZES[axis] for axis in axes)
        data[axes] = np.arange(np.prod(shape), dtype="u2").reshape(shape)
        channels = [
            {"label": f"dye {i}", "color": colour, "window": {"start": i, "end": 100 + i}}
            for i, colour in enumerate(("FF0000", "00FF00", "0080FF"))
        ]
        image = {
            "version": "0.5",
            "multiscales": [
                {
                    "axes": [{"name": axis, "unit": unit(axis)} for axis in axes],
                    "datasets": [
                        {
                            "path": "0",
                            "coordinateTransformations": [
                                {"type": "scale", "scale": [0.5] * len(axes)}
                            ],
                        }
                    ],
                }
            ],
            "omero": {"channels": channels},
        }
        group = zarr.create_group(tmp_path / "g" / axes, attributes={"ome": image})
        array = group.create_array("0", shape=shape, dtype="u2", dimension_names=list(axes))
        array[...] = data[axes]
    mount = mounted(tmp_path / "g")
    for axes in STACKS:
        lines += [f'open("{mount}/{axes}/0/array.tif");', "getDimensions(w, h, c, s, f);",
                  "getVoxelSize(vw, vh, vd, u); getLut(r, g, b); getMinAndMax(low, high);",
                  "setSlice(nSlices);",
                  f'print("{axes}", c, s, f, vw, u, r[255], b[255], low, high);',
                  'print(Stack.getFrameInterval(), getInfo("slice.label"));',
                  f'saveAs("Raw Data", "{tmp_path}/{axes}.raw");', "close();"]  # fmt: skip
    macro = tmp_path / "read.ijm"
    macro.write_text("\n".join([*lines, 'run("Quit");']))
    with imagej(screen, "-batch", macro) as program:
        said = program.communicate(timeout=100)[0].decode()
    words = [row.split() for row in said.splitlines()]
    rows = {w[0]: [*w[1:], *after] for w, after in pairwise(words) if w and w[0] in STACKS}
    for axes, counts in STACKS.items():
        assert [int(n) for n in rows[axes][:3]] == list(counts), said
        found = np.fromfile(tmp_path / f"{axes}.raw", ">u2").reshape(data[axes].shape)
        np.testing.assert_array_equal(found, data[axes], err_msg=axes)
    for axes in ("tzcyx", "zcyx", "cyx"):
        assert rows[axes][3:9] == ["0.5", "µm", "255", "0", "0", "100"], said
        assert " ".join(rows[axes][10:]) == "dye 2", said
    assert rows["tzcyx"][9] == rows["tyx"][9] == "30", said


def unit(axis: str) -> str:
    return {"t": "minute", "c": ""}.get(axis, "micrometer")


def test_a_picture_of_a_mounted_array(screen, mounted, tmp_path):
    """The one in docs/tools.md."""
    need_program("import")
    data = cells()
    zarr.create_array(
        tmp_path / "cells.zarr", data=data, chunks=(16, 64, 64), shards=(64, 128, 128),
        dimension_names=("z", "y", "x"),
        attributes={"dimension_units": ["0.5 um", "0.25 um", "0.25 um"]},
    )  # fmt: skip
    mount = mounted(tmp_path / "cells.zarr")
    ready, seen, picture = (tmp_path / name for name in ("ready", "seen", "imagej.png"))
    macro = tmp_path / "show.ijm"
    macro.write_text(f"""
        open("{mount}/array.tif");
        setSlice(33);
        setMinAndMax(100, 3000);
        run("Set... ", "zoom=150 x=128 y=128");
        setLocation(20, 110);
        run("Z Project...", "projection=[Max Intensity]");
        setMinAndMax(100, 3000);
        run("Set... ", "zoom=150 x=128 y=128");
        setLocation(430, 110);
        wait(500);
        File.saveString("", "{ready}");
        for (i = 0; i < 300 && !File.exists("{seen}"); i++) wait(100);
        run("Quit");
    """)
    with imagej(screen, "-macro", macro) as program:
        for _ in range(600):
            if ready.exists() or program.poll() is not None:
                break
            time.sleep(0.1)
        assert ready.exists(), "ImageJ did not show it"
        run("import", "-display", screen, "-window", "root", picture)
        seen.touch()
        program.wait(60)
    # The slice is on the screen, in its grey values.
    run("convert", picture, "-crop", "384x384+24+126", "+repage", "-resize", "256x256!",
        "-depth", "8", f"gray:{tmp_path / 'shown'}")  # fmt: skip
    shown = np.fromfile(tmp_path / "shown", "u1").reshape(256, 256).astype(float)
    assert np.corrcoef(shown.ravel(), data[32].clip(100, 3000).ravel())[0, 1] > 0.9
    if PICTURES:
        shutil.copy(picture, PICTURES)


def cells() -> np.ndarray:
    """Blurred balls and noise."""
    dice = np.random.default_rng(7)
    z, y, x = np.ogrid[:64, :256, :256]
    image = np.zeros((64, 256, 256))
    for _ in range(120):
        at = dice.uniform((4, 8, 8), (60, 248, 248))
        radius, bright = dice.uniform(5, 13), dice.uniform(0.4, 1)
        squares = (((n - c) / r) ** 2 for n, c, r in zip((z, y, x), at, (0.6, 1, 1), strict=True))
        distance = sum(squares) / radius**2
        image = np.maximum(image, bright * np.exp(-(distance**2)))
    return (image * 3000 + dice.normal(200, 25, image.shape)).clip(0).astype("u2")
