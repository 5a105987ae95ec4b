"""HDF5: the few structures of the format that a file of contiguous datasets needs.

https://docs.hdfgroup.org/documentation/hdf5/latest/_f_m_t3.html, superblock of version 0 and object
headers of version 2, which every HDF5 library since 1.8 reads. netCDF-4 is HDF5 with dimension
scales and a few attributes, which the files here have.
"""
