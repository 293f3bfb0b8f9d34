import pytest
from hypothesis import given
from hypothesis import strategies as st

from specserve.checkpoint.aux_layers import (
    AuxLayers,
    aux_layer_doubt,
    aux_layer_problems,
    find_aux_layers,
)
from specserve.config.speculation import AuxLayerConvention, DraftConfig

IN_SECTION = {"eagle_config": {"eagle_aux_hidden_state_layer_ids": [1, 17, 28]}}
ON_TOP = {"eagle_aux_hidden_state_layer_ids": [1, 17, 28]}


def asked(ids: list[int] | None = None, convention: AuxLayerConvention = "output") -> DraftConfig:
    return DraftConfig(
        path="/d", aux_layer_ids="auto" if ids is None else ids, aux_layer_convention=convention
    )


def layers(*ids: int, convention: AuxLayerConvention = "output") -> AuxLayers:
    return AuxLayers(ids=ids, convention=convention, source="config")


def test_an_output_id_is_the_input_of_the_next_layer() -> None:
    assert (2, 18, 29) == layers(1, 17, 28).inputs
    assert (1, 17, 28) == layers(1, 17, 28, convention="input").inputs


def test_the_configuration_wins_over_the_drafts_own_ids() -> None:
    found = find_aux_layers(asked([3, 4, 5], "input"), IN_SECTION, 32)

    assert AuxLayers(ids=(3, 4, 5), convention="input", source="config") == found


@pytest.mark.parametrize("config", [IN_SECTION, ON_TOP])
@pytest.mark.parametrize("convention", ["output", "input"])
def test_the_drafts_ids_are_meant_in_the_configured_convention(
    config: dict[str, object], convention: AuxLayerConvention
) -> None:
    found = find_aux_layers(asked(convention=convention), config, 32)

    assert AuxLayers(ids=(1, 17, 28), convention=convention, source="draft") == found


@pytest.mark.parametrize("convention", ["output", "input"])
def test_a_guess_is_in_the_input_convention_whatever_is_configured(
    convention: AuxLayerConvention,
) -> None:
    found = find_aux_layers(asked(convention=convention), {}, 80)

    assert (2, 40, 77) == found.inputs


@pytest.mark.parametrize("ids", ["1,2", [1, "2"], [True, 2], None, {}])
def test_ids_of_another_type_are_no_ids(ids: object) -> None:
    found = find_aux_layers(asked(), {"eagle_aux_hidden_state_layer_ids": ids}, 32)

    assert "guess" == found.source


def test_a_guess_is_warned_of_with_the_ids_and_the_override_that_pins_them() -> None:
    doubt = aux_layer_doubt(find_aux_layers(asked(), {}, 80))

    assert doubt is not None
    assert "guessed [2,40,77] (input convention)" in doubt.text
    assert doubt.text.endswith(
        "speculation.draft.aux_layer_ids=[2,40,77] speculation.draft.aux_layer_convention=input"
    )


def test_known_ids_are_not_warned_of() -> None:
    assert aux_layer_doubt(find_aux_layers(asked(), IN_SECTION, 32)) is None


def test_two_ids_against_a_fusion_layer_for_three_name_both_counts_and_widths() -> None:
    [problem] = aux_layer_problems(layers(1, 17), 36, 2880, fc_inputs=8640, draft_path="draft")

    assert "3 aux layers, because the draft's fc.weight takes 8640 = 3 x 2880" in problem.expected
    assert "2 given by: config (2 x 2880 = 5760)" in problem.expected


def test_a_width_that_is_no_multiple_means_another_target() -> None:
    [problem] = aux_layer_problems(layers(1, 17, 20), 36, 2880, fc_inputs=12288, draft_path="draft")

    assert "speculation.draft.path" == problem.key
    assert "a multiple of 2880 inputs" in problem.expected


def test_without_a_known_header_the_count_is_not_judged() -> None:
    assert [] == aux_layer_problems(layers(1, 17), 36, 2880, fc_inputs=None, draft_path="draft")


@pytest.mark.parametrize(
    ("ids", "convention", "accepted"),
    [
        ((0, 5, 31), "output", True),
        ((0, 5, 32), "output", False),
        ((0, 5, 32), "input", True),
        ((0, 5, 33), "input", False),
        ((-1, 5, 31), "output", False),
        ((5, 0, 31), "output", False),
        ((5, 5, 31), "output", False),
    ],
)
def test_ids_lie_within_the_target_and_increase(
    ids: tuple[int, ...], convention: AuxLayerConvention, accepted: bool
) -> None:
    found = aux_layer_problems(
        layers(*ids, convention=convention), 32, 8, fc_inputs=24, draft_path="draft"
    )

    assert accepted == (not found)
    assert all(f"in the {convention} convention" in problem.expected for problem in found)


@given(
    num_layers=st.integers(4, 100),
    convention=st.sampled_from(["output", "input"]),
    ids=st.lists(st.integers(-5, 120), min_size=1, max_size=5),
)
def test_the_advised_ids_are_accepted(
    num_layers: int, convention: AuxLayerConvention, ids: list[int]
) -> None:
    for problem in aux_layer_problems(
        layers(*ids, convention=convention), num_layers, 8, fc_inputs=24, draft_path="draft"
    ):
        advised = problem.fix.rsplit("=", 1)[1].strip("[]").split(",")
        mended = layers(*map(int, advised), convention=convention)

        assert [] == aux_layer_problems(mended, num_layers, 8, fc_inputs=24, draft_path="draft")
