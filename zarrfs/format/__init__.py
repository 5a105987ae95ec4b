"""Zarr metadata and codecs: pure and synchronous, no I/O.

Follows the Zarr v3 core specification (https://zarr-specs.readthedocs.io/en/latest/v3/core/)
and the registry of extensions (https://github.com/zarr-developers/zarr-extensions).
"""
