#!/usr/bin/env bash
# acquire-zarr writes pyramids whose means overflow: the mean of 3000000000 four times is 852516352.
#
# Versions: acquire-zarr 0.10.0, zarr 3.1.6, numpy 2.4.6.
# Behaviour: acquire-zarr writes microscope images as OME-Zarr while they are taken, and makes the smaller
# levels itself. The method MEAN adds four pixels in the type of the image. In uint32, uint64 and
# int64 the sum overflows without a word, so that identifiers and counts above a quarter of the range
# become other numbers in each level. uint8 and uint16 are right. The metadata of the image says that
# skimage.transform.downscale_local_mean made the levels, which computes in float64.
# Expected before the run: means are cut to whole numbers; a constant image stays constant.
# Output seen:
#   uint8   200                  levels 200, 200, 200
#   uint16  65535                levels 65535, 65535, 65535
#   uint32  3000000000           levels 3000000000, 852516352, 852516352
#   int64   4611686018427387905  levels 4611686018427387905, 1, 1
#   uint64  9223372036854775808  levels 9223372036854775808, 0, 0
#   said to be made by skimage.transform.downscale_local_mean
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install acquire-zarr==0.10.0 zarr==3.1.6 numpy==2.4.6
cd "$folder"
venv/bin/python -I -W ignore - <<'PYTHON'
import acquire_zarr
import numpy as np
import zarr
from acquire_zarr import ArraySettings, Dimension, DimensionType, StreamSettings, ZarrStream


def axis(name, kind, size, chunk):
    return Dimension(
        name=name, kind=kind, array_size_px=size, chunk_size_px=chunk, shard_size_chunks=1
    )


def levels(image):
    array = ArraySettings(
        output_key="image",
        data_type=image.dtype.type,
        dimensions=[
            axis("t", DimensionType.TIME, 0, 1),
            axis("y", DimensionType.SPACE, 64, 16),
            axis("x", DimensionType.SPACE, 64, 16),
        ],
        downsampling_method=acquire_zarr.DownsamplingMethod.MEAN,
    )
    stream = ZarrStream(StreamSettings(store_path="s.zarr", overwrite=True, arrays=[array]))
    stream.append(image)
    stream.close()
    group = zarr.open_group("s.zarr/image", mode="r")
    values = [np.unique(group[name][:]) for name in ("0", "1", "2")]
    assert all(value.size == 1 for value in values)
    said = group.attrs["ome"]["multiscales"][0]["metadata"]["method"]
    return [int(value[0]) for value in values], said


seen = {
    "uint8": (200, 200, 200),
    "uint16": (65535, 65535, 65535),
    "uint32": (3000000000, 852516352, 852516352),
    "int64": (2**62 + 1, 1, 1),
    "uint64": (2**63, 0, 0),
}
for dtype, (value, *smaller) in seen.items():
    found, said = levels(np.full((64, 64), value, dtype))
    print(f"{dtype:7} {value:<20} levels {', '.join(map(str, found))}")
    assert found == [value, *smaller]
print("said to be made by", said)
assert said == "skimage.transform.downscale_local_mean"
PYTHON
