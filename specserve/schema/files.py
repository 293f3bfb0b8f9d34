"""The schema of each kind of configuration file, and where it lies beside such files."""

import json
from collections.abc import Iterator
from pathlib import Path

from specserve.config.run import RunConfig
from specserve.schema.document import (
    DIALECT,
    REFERENCE,
    Schema,
    models_schema,
    partial,
    run_schema,
    section_models,
    used_definitions,
    with_partials,
)

FILE = "schema.json"
RUN_FILE = "run.schema.json"
# Not a group of the configuration, but a folder of files that change all of it.
EXPERIMENT = "experiment"

_DEFAULTS: Schema = {
    "description": "Hydra's defaults list: what this file is made of, the later wins",
    "type": "array",
    "items": {
        "anyOf": [
            {"type": "string"},
            {
                "type": "object",
                "maxProperties": 1,
                "minProperties": 1,
                "propertyNames": {"pattern": r"^(optional )?(override )?/?[\w./@:]+$"},
                "additionalProperties": {
                    "anyOf": [
                        {"type": ["string", "null"]},
                        {"type": "array", "items": {"type": "string"}},
                    ]
                },
            },
        ]
    },
}


def schema_files() -> dict[Path, str]:
    """Text by relative path: one beside the option files of each group, as conf/ is laid out.

    schema.json at the top is that of the primary config, run.schema.json that of a whole run.
    """
    schemas = {
        Path(RUN_FILE): run_schema(),
        Path(FILE): change_schema("the primary configuration: a defaults list, and changes to it"),
        Path(EXPERIMENT, FILE): change_schema("an experiment: a change to the whole run"),
        **{Path(section, FILE): option_schema(section) for section in RunConfig.model_fields},
    }
    return {
        path: json.dumps(schema, indent=2, ensure_ascii=False) + "\n"
        for path, schema in schemas.items()
    }


def option_schema(section: str) -> Schema:
    """An option file of a group: all keys of one kind, or with a defaults list any of them."""
    definitions = _definitions()
    names = section_models(section)
    whole = [_with_defaults(definitions[name]) for name in names]
    parts = [_with_defaults(definitions[partial(name)]) for name in names]
    body: Schema = {
        "if": {"type": "object", "required": ["defaults"]},
        "then": _any(parts),
        "else": _any(whole),
    }
    return _document(f"an option of the group {section}", body, definitions)


def change_schema(title: str) -> Schema:
    """A file that changes a run: any keys of any section, a defaults list, Hydra's own settings."""
    definitions = _definitions()
    sections = {
        section: _any(
            [
                *({"$ref": f"#/$defs/{partial(name)}"} for name in section_models(section)),
                {"$ref": "#/$defs/reference"},
            ]
        )
        for section in RunConfig.model_fields
    }
    body: Schema = {
        "type": "object",
        "properties": {
            "defaults": _DEFAULTS,
            **sections,
            "hydra": {"description": "settings of Hydra itself", "type": "object"},
        },
        "additionalProperties": False,
    }
    return _document(title, body, definitions)


def write_schema_files(folder: Path) -> Iterator[Path]:
    """Write all of them below `folder`, making the folders; the paths. Raises OSError."""
    for path, text in schema_files().items():
        place = folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8")
        yield place


def _definitions() -> dict[str, Schema]:
    return {"reference": REFERENCE, **with_partials(models_schema()["$defs"])}


def _with_defaults(model: Schema) -> Schema:
    return {**model, "properties": {"defaults": _DEFAULTS, **model["properties"]}}


def _any(schemas: list[Schema]) -> Schema:
    return schemas[0] if len(schemas) == 1 else {"anyOf": schemas}


def _document(title: str, body: Schema, definitions: dict[str, Schema]) -> Schema:
    return {
        "$schema": DIALECT,
        "title": f"specserve: {title}",
        **body,
        "$defs": used_definitions(body, definitions),
    }
