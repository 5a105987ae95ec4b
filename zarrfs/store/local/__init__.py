"""Objects that are files of this machine."""
