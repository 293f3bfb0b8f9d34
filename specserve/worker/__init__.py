"""Building and supervising a worker: phases, the ledger, the process."""
