"""Data types of the core specification, and the forms of fill values in metadata.

The interface is `zarrfs.format.data_type`. Extension types use the same forms of fill values.
"""
