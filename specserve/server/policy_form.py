"""What a form for the policy needs: every kind with its fields, and values to begin with."""

from collections.abc import Mapping
from typing import Any

import yaml
from pydantic import TypeAdapter, ValidationError

from specserve.config.compose import config_directory
from specserve.config.policy import PolicyConfig

_POLICY: TypeAdapter[PolicyConfig] = TypeAdapter(PolicyConfig)


def policy_form() -> dict[str, Any]:
    """The JSON schema of a policy, and for each kind the values that ship in conf/policy."""
    return {"schema": _POLICY.json_schema(), "presets": presets()}


def presets() -> Mapping[str, Mapping[str, Any]]:
    """By kind. The option named like its kind goes before others of that kind."""
    found: dict[str, Mapping[str, Any]] = {}
    for file in sorted((config_directory() / "policy").glob("*.yaml")):
        fields = yaml.safe_load(file.read_text(encoding="utf-8"))
        if not _is_whole(fields):  # a part that others include
            continue
        if file.stem == fields["kind"] or fields["kind"] not in found:
            found[fields["kind"]] = fields
    return found


def _is_whole(fields: object) -> bool:
    try:
        _POLICY.validate_python(fields)
    except ValidationError:
        return False
    return True
