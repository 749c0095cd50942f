"""Code that runs inside the server's own environment: standard library alone, found by PYTHONPATH."""
