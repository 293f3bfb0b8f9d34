"""SGLang as it is installed, steered from outside."""
