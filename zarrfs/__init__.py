"""Mount Zarr arrays as ordinary files."""

__version__ = "0.1.0"
