"""Data types beyond the core, by family; `zarrfs.format.registry` lists them."""
