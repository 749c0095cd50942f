"""Code that runs inside the server's own environment, found by PYTHONPATH: standard library only."""
