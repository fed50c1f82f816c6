"""The engine: one model, one conversation, three clicks."""
