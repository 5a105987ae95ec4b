"""Copies of whole arrays and hierarchies, in another form where that is asked for."""
