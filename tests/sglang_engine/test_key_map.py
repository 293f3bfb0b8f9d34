"""No key of the configuration is forgotten, and none becomes what SGLang does not have."""

import pytest

from specserve.sglang_engine.key_map import ELSEWHERE, MAPPED, PLACE_FIELDS
from specserve.sglang_engine.settle import server_arguments
from specserve.sglang_engine.versions import NEWEST
from tests.sglang_engine.plans import CASES, DATA, known_arguments, plan_of

KEYS = (DATA / "config_keys.txt").read_text().split()


def test_every_key_is_mapped_or_somebody_elses() -> None:
    assert set(KEYS) == set(MAPPED) | set(ELSEWHERE)
    assert not set(MAPPED) & set(ELSEWHERE)


def test_every_mapping_is_used_by_some_run_and_no_other() -> None:
    used = {
        (argument.key, argument.field)
        for name in CASES
        for argument in server_arguments(plan_of(name), NEWEST).arguments
        if not argument.key.startswith("engine.extra_args.")
    }

    assert {(key, field) for key, fields in MAPPED.items() for field in fields} == used


@pytest.mark.parametrize("field", PLACE_FIELDS)
def test_a_place_is_told_in_sglangs_words(field: str) -> None:
    assert "--" + field.replace("_", "-") in {entry["flag"] for entry in known_arguments()}
