"""Where elements are on the earth, or in a volume that is turned."""
