"""The libraries that zarrfs is measured against.

Each task takes its arguments, prepares what is not measured, and returns the function that is.
"""
