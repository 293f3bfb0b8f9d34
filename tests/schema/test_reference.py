from pathlib import Path

import pytest

from specserve.config.keys import all_keys
from specserve.config.run import RunConfig
from specserve.schema.reference import _UNTOLD, Key, reference_page, section_keys

PAGE = Path(__file__).parents[2] / "docs/configuration.md"


def key(name: str) -> Key:
    [found] = [one for one in section_keys(name.partition(".")[0]) if one.name == name]
    return found


def test_the_page_is_up_to_date() -> None:
    regenerate = "run `specserve schema --reference docs/configuration.md`"
    assert reference_page() == PAGE.read_text(encoding="utf-8"), regenerate


def test_the_page_has_every_key_once() -> None:
    found = [one.name for section in RunConfig.model_fields for one in section_keys(section)]

    assert all_keys() == sorted(found)


def test_every_key_says_what_it_accepts_what_it_is_for_and_its_default() -> None:
    for section in RunConfig.model_fields:
        for one in section_keys(section):
            assert one.accepts, one.name
            assert one.meaning, one.name
            assert one.defaults, one.name


def test_a_key_of_some_kinds_names_them_and_their_defaults() -> None:
    assert ("depth_schedule",) == key("policy.hysteresis").kinds
    assert ("acceptance", "cost_model") == key("policy.margin").kinds
    assert ("`0.05`", "`0.03`") == key("policy.margin").defaults
    assert ("required",) == key("policy.calibration").defaults
    assert () == key("policy.kind").kinds


def test_only_the_policy_changes_at_run_time() -> None:
    live = {
        one.name
        for section in RunConfig.model_fields
        for one in section_keys(section)
        if one.live.startswith("yes")
    }

    assert {name.partition(".")[0] for name in live} == {"policy"}
    assert "policy.calibration" not in live


@pytest.mark.parametrize("name", sorted(_UNTOLD))
def test_what_the_page_adds_no_model_says(name: str) -> None:
    models = [one for one in all_keys() if one == name]

    assert [name] == models
    assert _UNTOLD[name] == key(name).meaning
