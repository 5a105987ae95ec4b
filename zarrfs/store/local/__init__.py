"""A store whose objects are files on this machine."""
