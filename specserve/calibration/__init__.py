"""Measured round times and acceptance: what a depth costs and what it yields."""
