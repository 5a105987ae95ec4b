"""References as kerchunk and VirtualiZarr write them: document, allowed targets, reader."""
