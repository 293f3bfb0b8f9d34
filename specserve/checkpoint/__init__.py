"""Checkpoints seen from their headers: what can be known before any weight is read."""
