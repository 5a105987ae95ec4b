"""Converts data types, codecs and fill values that users type to the form of metadata."""
