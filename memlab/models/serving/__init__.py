"""Model servers: vLLM in its own environment, started, watched and stopped."""
