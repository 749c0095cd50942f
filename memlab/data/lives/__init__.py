"""A generator of lives: what happens to a person, and the chats in which it is mentioned."""
