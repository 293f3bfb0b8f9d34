from typing import get_args

from pydantic import TypeAdapter

from specserve.config.policy import PolicyConfig
from specserve.server.policy_form import policy_form, presets

POLICY: TypeAdapter[PolicyConfig] = TypeAdapter(PolicyConfig)
KINDS = {
    model.model_fields["kind"].annotation.__args__[0]
    for model in get_args(get_args(PolicyConfig)[0])
}


def test_the_schema_has_every_kind() -> None:
    assert KINDS == set(policy_form()["schema"]["discriminator"]["mapping"])


def test_a_preset_is_a_policy_of_its_kind() -> None:
    found = presets()

    assert {"off", "always", "batch_threshold"} <= set(found) <= KINDS
    assert list(found) == [POLICY.validate_python(fields).kind for fields in found.values()]
