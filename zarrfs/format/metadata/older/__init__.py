"""Metadata documents of Zarr v1 and v2."""
