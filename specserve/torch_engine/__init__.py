"""The embedded engine: Llama-family targets and EAGLE-3 heads in plain torch."""
