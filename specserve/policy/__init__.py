"""Speculation policies: pure objects that choose how deep to draft, once per round."""
