"""OpenAI-compatible HTTP on top of any engine."""
