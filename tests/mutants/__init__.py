"""Puts small faults into the modules that data depend on, and sees whether the tests notice."""
