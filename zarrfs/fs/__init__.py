"""The file system without FUSE: tree, inodes, handles."""
