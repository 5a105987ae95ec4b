"""Native decoders that are not trusted with hostile data run in processes of their own.

`decoders.isolated` gives what asks them. A process that crashes, hangs or answers with
something else is ended, and only the chunk at hand is an error.
"""
