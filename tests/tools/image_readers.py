"""Reads the planes of images by one library: ``python image_readers.py LIBRARY FILE …``.

Prints JSON: of each file, by level, the MD5 of each plane that the library shows, in the order of
the pages. Run by the Python that has the library.
"""

import hashlib
import json
import math
import os
import re
import sys


def tifffile(path):
    import tifffile

    with tifffile.TiffFile(path) as file:
        for number, level in enumerate(file.series[0].levels):
            planes = level.asarray()
            rank = 3 if level.axes.endswith("S") else 2
            yield number, planes.reshape(-1, *planes.shape[-rank:])


def rasterio(path):
    import numpy as np
    import rasterio

    def read(name, **options):
        with rasterio.open(name, **options) as file:
            planes = file.read()
        # Several bands are colours.
        return planes[0] if len(planes) == 1 else np.moveaxis(planes, 0, -1)

    with rasterio.open(path) as file:
        pages = [f"GTIFF_DIR:{n + 1}:{path}" for n in range(len(file.subdatasets))] or [path]
        # It lists a level again that is in a subdirectory and in the main chain.
        overviews = sorted(set(file.overviews(1)))
    yield 0, [read(page) for page in pages]
    for number in range(len(overviews)):
        yield number + 1, [read(path, overview_level=number)]


def pyvips(path):
    import pyvips

    first = pyvips.Image.new_from_file(path)
    pages = first.get("n-pages")
    levels = first.get("n-subifds")
    if _planes(first.get("image-description")) == 1:
        # The levels are pages, too.
        pages = 1
    yield 0, [pyvips.Image.new_from_file(path, page=n).numpy() for n in range(pages)]
    for number in range(levels):
        planes = [
            pyvips.Image.new_from_file(path, page=n, subifd=number).numpy() for n in range(pages)
        ]
        yield number + 1, planes


def _planes(description):
    """How many planes OME-XML names."""
    samples = re.search(r'SamplesPerPixel="(\d+)"', description)
    planes = math.prod(map(int, re.findall(r'Size[ZCT]="(\d+)"', description)))
    return planes // int(samples[1] if samples else 1)


def openslide(path):
    """It shows the first plane, as bytes."""
    import numpy as np
    import openslide

    with openslide.OpenSlide(path) as slide:
        for number, size in enumerate(slide.level_dimensions):
            pixels = np.asarray(slide.read_region((0, 0), number, size))[..., :3]
            grey = (pixels == pixels[..., :1]).all()
            yield number, [pixels[..., 0] if grey else pixels]


def large_image(path):
    import large_image
    import large_image_source_tiff

    source = large_image_source_tiff.open(path)
    frames = len(source.getMetadata().get("frames", [0]))

    def plane(frame):
        data, _ = source.getRegion(format=large_image.constants.TILE_FORMAT_NUMPY, frame=frame)
        return data[..., 0] if data.shape[-1] in (1, 2) else data

    yield 0, [plane(frame) for frame in range(frames)]


def napari(path):
    from napari_builtins.io import napari_get_reader

    (layer,) = napari_get_reader(path)(path)
    data = layer[0]
    rank = 3 if data.ndim > 2 and data.shape[-1] == 3 else 2
    yield 0, data.reshape(-1, *data.shape[-rank:])


def qgis(path):
    import numpy as np
    from qgis.core import QgsRasterLayer

    types = {1: "u1", 2: "u2", 3: "i2", 6: "f4"}

    def read(name, divisor=1):
        layer = QgsRasterLayer(name, "image", "gdal")
        provider = layer.dataProvider()
        size = provider.xSize() // divisor, provider.ySize() // divisor
        bands = []
        for band in range(1, provider.bandCount() + 1):
            block = provider.block(band, provider.extent(), *size)
            data = np.frombuffer(bytes(block.data()), types[int(block.dataType())])
            bands.append(data.reshape(size[::-1]))
        return bands[0] if len(bands) == 1 else np.stack(bands, -1)

    layer = QgsRasterLayer(path, "image", "gdal")
    pages = [each.partition("!!::!!")[0] for each in layer.dataProvider().subLayers()] or [path]
    yield 0, [read(page) for page in pages]
    # A view of half the size is the first level.
    yield 1, [read(path, 2)]


def main():
    library, *paths = sys.argv[1:]
    if library == "qgis":
        os.environ["QT_QPA_PLATFORM"] = "offscreen"
        from qgis.core import QgsApplication

        # Kept: it ends with the last reference.
        application = QgsApplication([], False)
        application.initQgis()
    found = [
        {
            level: [hashlib.md5(plane.tobytes()).hexdigest() for plane in planes]
            for level, planes in globals()[library](path)
        }
        for path in paths
    ]
    # Some libraries print warnings on standard output.
    print(f"\n{json.dumps(found)}")


if __name__ == "__main__":
    main()
