"""memlab finds out what makes retrieval for long-term conversational memory work."""

__version__ = "0.1.0"
