"""Archives as stores: `ArchiveReader` reads members of zip and tar files that may be replaced.

The table of contents is held against the bounds of `zarrfs.bounds` while it is read, whatever
its author wrote into it.
"""
