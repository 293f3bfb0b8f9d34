"""KV memory: one row a request, token-major, the same layout for target and draft."""
