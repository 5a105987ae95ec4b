"""How the event loop hands work to threads and waits for it."""
