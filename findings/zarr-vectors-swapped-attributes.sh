#!/usr/bin/env bash
# zarr-vectors makes 256, 2, 3, 1024, 5, 1536 of the attributes 1 to 6 of two lines, if they are big-endian.
#
# Versions: zarr-vectors 0.9.2, zarr 3.4.2, numcodecs 0.17.1, numpy 2.5.5.
# Behaviour: zarr-vectors stores points, lines and meshes as Zarr. It writes the bytes of an attribute, and notes the type without
# its byte order: attributes of points from FITS, LAS or NetCDF-3 come back swapped. Of a line, runs inside a chunk are
# written on another path, which converts them, so right and swapped numbers stand side by side. Positions and ids are
# right. A schema with position_dtype="float64" stores float32. A second `add_points` replaces the first, as newer pages of
# its documentation say of lines; its attributes are then read in the type of the first. No error, and `validate` finds none.
# Expected before the run: the numbers that were written, of the type of the schema, and eight points after two calls.
# Output seen:
#   points >i4   [1, 2, 300, 70000] -> [16777216, 33554432, 738263040, 1880162560]
#   points <i4   [1, 2, 300, 70000] -> [1, 2, 300, 70000]
#   two lines >i2 [1, 2, 3, 4, 5, 6] -> [256, 2, 3, 1024, 5, 1536]
#   two lines <i2 [1, 2, 3, 4, 5, 6] -> [1, 2, 3, 4, 5, 6]
#   a third, position_dtype="float64" -> float32 0.3333333432674408
#   four points with int32, then four with float32 10 to 13 -> 4 points, [1092616192, 1093664768, 1094713344, 1095761920]
#   errors that validate finds: []
set -euo pipefail
python=${PYTHON:-python3}
"$python" -c "import sys; sys.exit(sys.version_info < (3, 12))" ||
    { echo "PYTHON= has to name a Python 3.12 or later" >&2; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install zarr-vectors==0.9.2 zarr==3.4.2 numcodecs==0.17.1 numpy==2.5.5
cd "$folder"
venv/bin/python -I -W ignore - <<'PYTHON'
import numpy as np
import zarr_vectors


def created(name, kind, **options):
    layout = zarr_vectors.Layout(cells=4)
    schema = zarr_vectors.Schema(bounds=([0.0] * 3, [100.0] * 3), kind=kind, layout=layout, **options)
    return zarr_vectors.create(name, schema=schema)


def read(name):
    return zarr_vectors.open(name).select().read()


def report(name, found, seen):
    print(f"{name} -> {found}")
    assert found == seen, found


points = np.array([[1, 1, 1], [2, 2, 2], [3, 3, 3], [40, 40, 40]], "f4")
numbers = [1, 2, 300, 70000]
for order, seen in ((">", [16777216, 33554432, 738263040, 1880162560]), ("<", numbers)):
    created(f"points{order}", "point_cloud").add_points(points, attributes={"a": np.array(numbers, order + "i4")})
    result = read(f"points{order}")
    assert np.array_equal(result.positions, points)
    report(f"points {order}i4   {numbers}", result.attributes["a"].tolist(), seen)

lines = [np.array([[x, 1, 1] for x in row], "f4") for row in ((1, 30, 60, 5), (99, 2))]
for order, seen in ((">", [256, 2, 3, 1024, 5, 1536]), ("<", [1, 2, 3, 4, 5, 6])):
    values = [np.array([1, 2, 3, 4], order + "i2"), np.array([5, 6], order + "i2")]
    created(f"lines{order}", "polyline").add_polylines(lines, attributes={"a": values})
    result = read(f"lines{order}")
    assert np.array_equal(result.positions, np.concatenate(lines))
    report(f"two lines {order}i2 [1, 2, 3, 4, 5, 6]", result.attributes["a"].tolist(), seen)

created("doubles", "point_cloud", position_dtype="float64").add_points(np.full((1, 3), 1 / 3))
found = read("doubles").positions
report('a third, position_dtype="float64"', f"{found.dtype} {found[0, 0].item()}", "float32 0.3333333432674408")

twice = created("twice", "point_cloud")
twice.add_points(points, attributes={"a": np.arange(4, dtype="i4")})
twice.add_points(points + 1, attributes={"a": np.arange(10, 14, dtype="f4")})
result = read("twice")
found = f"{len(result.positions)} points, {result.attributes['a'].tolist()}"
seen = "4 points, [1092616192, 1093664768, 1094713344, 1095761920]"
report("four points with int32, then four with float32 10 to 13", found, seen)
errors = [error for name in ("points>", "lines>", "twice") for error in zarr_vectors.open(name).validate().errors]
print(f"errors that validate finds: {errors}")
assert errors == []
PYTHON
