"""A live memory in an application: for asyncio, and as tools of an agent."""
