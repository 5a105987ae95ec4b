"""Runs native decoders that cannot be trusted with hostile data in processes of their own.

`decoders.isolated` returns the object that sends requests to these processes. A process that
crashes, hangs or sends an invalid answer is ended, and only the chunk of that request is an error.
"""
