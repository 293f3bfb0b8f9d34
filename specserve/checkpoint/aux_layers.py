"""Which target layers feed the EAGLE-3 head: found, put into one convention, and checked.

Two conventions name the same hidden state differently: *output* id X is what layer X puts out,
*input* id X is what layer X takes in. Output X is input X + 1.
"""

from dataclasses import dataclass
from typing import Any, Literal

from specserve.config.speculation import AuxLayerConvention, DraftConfig
from specserve.errors import Doubt, Problem
from specserve.rule_ids import RuleId

KEY = "speculation.draft.aux_layer_ids"
CONVENTION_KEY = "speculation.draft.aux_layer_convention"
_CHECKPOINT_FIELD = "eagle_aux_hidden_state_layer_ids"


@dataclass(frozen=True, slots=True, kw_only=True)
class AuxLayers:
    """The ids as `source` gives them, and the convention they are meant in."""

    ids: tuple[int, ...]
    convention: AuxLayerConvention
    source: Literal["config", "draft", "guess"]

    @property
    def inputs(self) -> tuple[int, ...]:
        """Id i is the hidden state that enters layer i; num_layers is the last layer's output."""
        return tuple(i + 1 for i in self.ids) if self.convention == "output" else self.ids


def find_aux_layers(asked: DraftConfig, draft_config: dict[str, Any], num_layers: int) -> AuxLayers:
    """The configuration's ids, else the draft's own, else the usual guess 2, n/2, n-3.

    The guess is in the input convention whatever the configuration says: that is how the heads
    were trained that name no ids.
    """
    convention = asked.aux_layer_convention
    if asked.aux_layer_ids != "auto":
        return AuxLayers(ids=tuple(asked.aux_layer_ids), convention=convention, source="config")
    stored = _stored_ids(draft_config)
    if stored is not None:
        return AuxLayers(ids=stored, convention=convention, source="draft")
    return AuxLayers(ids=usual_inputs(num_layers), convention="input", source="guess")


def usual_inputs(num_layers: int) -> tuple[int, int, int]:
    """The ids that most heads are trained on (input convention)."""
    return 2, num_layers // 2, num_layers - 3


def aux_layer_problems(
    aux: AuxLayers,
    num_layers: int,
    target_hidden_size: int,
    fc_inputs: int | None,
    *,
    draft_path: str,
) -> list[Problem]:
    """Ids out of range or order, or not as many as the fusion layer takes.

    `fc_inputs` is the input width of fc.weight, None where the header isn't known.
    """
    if fc_inputs is not None and fc_inputs % target_hidden_size:
        return [*_id_problems(aux, num_layers), _width(draft_path, fc_inputs, target_hidden_size)]
    return [
        *_id_problems(aux, num_layers),
        *_count_problems(aux, num_layers, target_hidden_size, fc_inputs),
    ]


def aux_layer_doubt(aux: AuxLayers) -> Doubt | None:
    """What to tell when the ids are a guess, with the override that pins them."""
    if aux.source != "guess":
        return None
    ids = _listed(aux.ids)
    return Doubt(
        rule=RuleId.AUX_LAYERS_GUESSED,
        key=KEY,
        text=f"the draft's config.json names no aux layers: guessed {ids} ({aux.convention} "
        f"convention). A wrong guess costs most of the acceptance; pin them with "
        f"{KEY}={ids} {CONVENTION_KEY}={aux.convention}",
    )


def _stored_ids(draft_config: dict[str, Any]) -> tuple[int, ...] | None:
    section = draft_config.get("eagle_config")
    for place in (section if isinstance(section, dict) else {}, draft_config):
        ids = place.get(_CHECKPOINT_FIELD)
        if isinstance(ids, list) and all(type(i) is int for i in ids):
            return tuple(ids)
    return None


def _id_problems(aux: AuxLayers, num_layers: int) -> list[Problem]:
    last = num_layers - 1 if aux.convention == "output" else num_layers
    increasing = all(a < b for a, b in zip(aux.ids, aux.ids[1:], strict=False))
    if increasing and all(0 <= i <= last for i in aux.ids):
        return []
    return [
        Problem(
            rule=RuleId.AUX_LAYER_IDS,
            key=KEY,
            value=list(aux.ids),
            expected=f"strictly increasing ids from 0 to {last}, the layers of the target in the "
            f"{aux.convention} convention (given by: {aux.source})",
            fix=f"set {KEY} to the ids that the head was trained with, such as "
            f"{_example(num_layers, aux.convention)}",
        )
    ]


def _width(path: str, fc_inputs: int, target_hidden_size: int) -> Problem:
    return Problem(
        rule=RuleId.HEAD_OF_ANOTHER_TARGET,
        key="speculation.draft.path",
        value=path,
        expected=f"fc.weight with a multiple of {target_hidden_size} inputs, the target's "
        f"hidden_size; it has {fc_inputs}",
        fix="set speculation.draft.path to a head that was trained for this target",
    )


def _count_problems(
    aux: AuxLayers, num_layers: int, target_hidden_size: int, fc_inputs: int | None
) -> list[Problem]:
    if fc_inputs is None or fc_inputs == len(aux.ids) * target_hidden_size:
        return []
    wanted = fc_inputs // target_hidden_size
    return [
        Problem(
            rule=RuleId.AUX_LAYER_COUNT,
            key=KEY,
            value=list(aux.ids),
            expected=f"{wanted} aux layers, because the draft's fc.weight takes {fc_inputs} = "
            f"{wanted} x {target_hidden_size} inputs; {len(aux.ids)} given by: {aux.source} "
            f"({len(aux.ids)} x {target_hidden_size} = {len(aux.ids) * target_hidden_size})",
            fix=f"set {KEY} to the {wanted} ids that the head was trained with"
            + (f", such as {_example(num_layers, aux.convention)}" if wanted == 3 else ""),
        )
    ]


def _example(num_layers: int, convention: AuxLayerConvention) -> str:
    """A setting that holds for this target: the usual ids, or three where they don't fit."""
    inputs = usual_inputs(num_layers)
    if not 2 < inputs[1] < inputs[2]:
        inputs = (1, max(2, num_layers // 2), max(3, num_layers))
    ids = [i - 1 for i in inputs] if convention == "output" else list(inputs)
    return f"{KEY}={_listed(tuple(ids))}"


def _listed(ids: tuple[int, ...]) -> str:
    """As Hydra takes it on a command line without quotes."""
    return f"[{','.join(map(str, ids))}]"
