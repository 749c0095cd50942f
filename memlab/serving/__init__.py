"""Model servers: vLLM in an environment of its own, started, watched and ended."""
