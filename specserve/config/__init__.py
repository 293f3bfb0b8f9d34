"""The run configuration: composed by Hydra, validated by pydantic, plain values from there on."""
