"""Speculative decoding for LLM serving as a reviewed configuration."""

__version__ = "0.1.0"
