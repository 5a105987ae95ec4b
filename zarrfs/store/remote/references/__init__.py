"""References as kerchunk and VirtualiZarr write them: the document, where it may lead, reading."""
