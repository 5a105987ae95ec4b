"""Arrays a round trip away: zarrfs beside TensorStore's drivers and zarr-python.

``make bench-remote`` runs it. The store is the tests' own server on the loopback interface,
which adds a latency to each request and each new connection and bounds a connection's bytes.
"""
