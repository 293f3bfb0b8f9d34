"""The whole configuration as JSON Schema (draft 2020-12), from the models."""

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic.json_schema import GenerateJsonSchema

from specserve.config.keys import family
from specserve.config.run import RunConfig

Schema = dict[str, Any]

DIALECT = "https://json-schema.org/draft/2020-12/schema"
# A value that Hydra fills in: a required one that is still missing, or a reference.
REFERENCE: Schema = {
    "description": "??? (a value that has to be given) or a reference such as ${oc.env:NAME}",
    "type": "string",
    "pattern": r"^\?\?\?$|\$\{.+\}",
}


def run_schema() -> Schema:
    """A whole run: every section and every key, as in config.yaml of a run directory."""
    schema = models_schema()
    definitions = schema.pop("$defs")
    return {
        "$schema": DIALECT,
        "title": "specserve: a whole run",
        **schema,
        "$defs": {"reference": REFERENCE, **definitions},
    }


def models_schema() -> Schema:
    """RunConfig and all it consists of; any value may be left to Hydra."""
    schema = RunConfig.model_json_schema(schema_generator=_WithoutTitles)
    definitions = {name: _open(model) for name, model in schema["$defs"].items()}
    return {**_open(schema), "$defs": definitions}


def section_models(section: str) -> list[str]:
    """Names in `$defs` of the models that the section may be: one, or one per kind."""
    return [model.__name__ for model in family(RunConfig.model_fields[section].annotation)]


def partial(name: str) -> str:
    """The name of the same model with every key optional."""
    return f"{name}.partial"


def with_partials(definitions: Mapping[str, Schema]) -> dict[str, Schema]:
    """`definitions`, and beside each model one that needs none of its keys, all the way down."""
    partials = {
        partial(name): _refer_to_partials(_optional(model), definitions)
        for name, model in definitions.items()
    }
    return {**definitions, **partials}


class _WithoutTitles(GenerateJsonSchema):
    """A key's own name as its title tells nobody anything."""

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ANN401 - pydantic's own
        return False

    def get_title_from_name(self, name: str) -> str:
        return name


def _open(model: Schema) -> Schema:
    """The model with each of its keys open to what Hydra fills in."""
    if "properties" not in model:
        return model
    return {
        **model,
        "properties": {name: _or_reference(one) for name, one in model["properties"].items()},
    }


def _or_reference(schema: Schema) -> Schema:
    told = ("description", "examples")
    description: Schema = {key: schema[key] for key in told if key in schema}
    rest = {key: value for key, value in schema.items() if key not in told}
    alternatives = rest["anyOf"] if set(rest) == {"anyOf"} else [rest]
    return {**description, "anyOf": [*alternatives, {"$ref": "#/$defs/reference"}]}


def _optional(model: Schema) -> Schema:
    return {key: value for key, value in model.items() if key != "required"}


def _refer_to_partials(node: Any, definitions: Mapping[str, Schema]) -> Any:  # noqa: ANN401 - JSON
    """`node` with references to models exchanged for their partial forms; lists stay whole."""
    match node:
        case {"$ref": str(reference), **rest} if reference.rpartition("/")[2] in definitions:
            return {"$ref": partial(reference), **rest}
        case {"type": "array"}:
            return node
        case {"discriminator": _, "oneOf": members, **rest}:
            return {"anyOf": _refer_to_partials(members, definitions), **rest}
        case dict():
            return {key: _refer_to_partials(value, definitions) for key, value in node.items()}
        case list():
            return [_refer_to_partials(item, definitions) for item in node]
        case _:
            return node


def used_definitions(node: Any, definitions: Mapping[str, Schema]) -> dict[str, Schema]:  # noqa: ANN401
    """Those that `node` refers to, directly or not, in their order."""
    found: set[str] = set()
    pending = list(_references(node))
    while pending:
        name = pending.pop()
        if name not in found:
            found.add(name)
            pending += _references(definitions[name])
    return {name: schema for name, schema in definitions.items() if name in found}


def _references(node: Any) -> Iterator[str]:  # noqa: ANN401 - any JSON
    match node:
        case {"$ref": str(reference)}:
            yield reference.rpartition("/")[2]
        case dict():
            for value in node.values():
                yield from _references(value)
        case list():
            for item in node:
                yield from _references(item)
        case _:
            return
