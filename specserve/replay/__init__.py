"""Policies on a recorded or made-up load, without an engine: what they would have done and got."""
