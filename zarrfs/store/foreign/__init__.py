"""Files of other formats as stores: references to their chunks, made once and kept.

`kinds` detects the format of a file, `translate` is the program that makes the references, `kept`
runs that program and keeps the references, `store` serves them while the file stays unchanged.
`hdf5`, `netcdf3` and `tiff` find the chunks in their formats; `hdf5_boxes` is the program that has
HDF5 read the chunks that no codec of Zarr decodes.
"""
