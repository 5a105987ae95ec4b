"""The codecs, one file each; `zarrfs.format.registry` lists them."""
