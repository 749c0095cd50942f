"""Encoders, rerankers and chat models, in this process or behind a server."""
