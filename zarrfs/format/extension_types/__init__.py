"""Data types outside the core, by family; `zarrfs.format.registry` lists them."""
