"""What scripts/bench_policy_load.py measures: round times, and a load that walks 1 -> 16 -> 1."""
