"""The configuration's JSON Schemas and its reference page, both read off the models and conf/."""

from specserve.schema.command import write_schemas

__all__ = ["write_schemas"]
