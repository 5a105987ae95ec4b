"""References as kerchunk and VirtualiZarr write them: where they may lead, and reading."""
