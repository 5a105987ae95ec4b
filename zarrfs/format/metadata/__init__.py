"""Metadata documents of every Zarr version, normalised to one frozen form."""
