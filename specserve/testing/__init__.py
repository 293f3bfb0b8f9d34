"""What specserve tests itself with, for its users as well: a scripted engine, small checkpoints."""
