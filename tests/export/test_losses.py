import pytest

from specserve.config.policy import AlwaysPolicy, PolicyConfig
from specserve.config.speculation import DraftConfig, Eagle3Speculation
from specserve.errors import ConfigError
from specserve.export.losses import DROPPABLE, find_losses
from specserve.export.run import ENGINES, translate
from specserve.export.source import read_source
from tests.export.runs import policy_steps, run_with, schedule, threshold

OWN_WHILE_OFF = {"vllm": "warm", "tensorrt-llm": "skip", "sglang": "warm"}


def _lost(policy: PolicyConfig, engine: str, draft: DraftConfig | None = None) -> list[str]:
    speculation = {} if draft is None else {"draft": draft}
    source = read_source(run_with(policy, speculation=speculation), engine)
    return [loss.name for loss in find_losses(source, ENGINES[engine])]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_policy_that_switches_at_once_both_ways_loses_nothing(engine: str) -> None:
    assert [] == _lost(threshold(8, while_off=OWN_WHILE_OFF[engine]), engine)
    assert [] == _lost(schedule((4, 3), (8, 2), while_off=OWN_WHILE_OFF[engine]), engine)
    assert [] == _lost(AlwaysPolicy(kind="always"), engine)


@pytest.mark.parametrize("engine", ENGINES)
def test_hysteresis_and_dwell_are_lost_everywhere(engine: str) -> None:
    both = ["hysteresis", "min_dwell_rounds"]

    assert both == _lost(threshold(8, resume=6, dwell=2, while_off=OWN_WHILE_OFF[engine]), engine)
    assert both == _lost(
        schedule((8, 3), hysteresis=1, dwell=8, while_off=OWN_WHILE_OFF[engine]), engine
    )


@pytest.mark.parametrize("engine", ENGINES)
def test_a_dwell_of_one_round_holds_nothing_back(engine: str) -> None:
    assert [] == _lost(threshold(8, dwell=1, while_off=OWN_WHILE_OFF[engine]), engine)


@pytest.mark.parametrize(
    ("engine", "able"),
    [("vllm", {"warm"}), ("tensorrt-llm", {"skip"}), ("sglang", {"warm", "skip"})],
)
@pytest.mark.parametrize("while_off", ["warm", "skip", "refill"])
def test_the_drafts_state_while_off_is_the_engines_own_matter(
    engine: str, able: set[str], while_off: str
) -> None:
    expected = [] if while_off in able else ["while_off"]

    assert expected == _lost(threshold(8, while_off=while_off), engine)


@pytest.mark.parametrize(
    "draft", [{"aux_layer_ids": [2, 8, 13]}, {"aux_layer_convention": "input"}]
)
def test_auxiliary_layers_that_are_not_the_drafts_own_are_lost(draft: dict[str, object]) -> None:
    speculation = run_with(threshold(8)).speculation
    assert isinstance(speculation, Eagle3Speculation)
    changed = speculation.draft.model_copy(update=draft)

    assert ["aux_layers"] == _lost(threshold(8), "vllm", draft=changed)


def test_what_is_lost_is_refused_until_it_is_dropped_by_name() -> None:
    run = run_with(threshold(8, resume=6, dwell=8, while_off="refill"))
    with pytest.raises(ConfigError) as raised:
        translate(run, ENGINES["vllm"], ["hysteresis"])

    assert ["policy.min_dwell_rounds", "policy.while_off"] == [
        problem.key for problem in raised.value.problems
    ]
    assert all(
        "--drop hysteresis,min_dwell_rounds,while_off " in problem.fix
        for problem in raised.value.problems
    )


def test_each_fix_also_offers_a_policy_that_loses_nothing() -> None:
    run = run_with(schedule((8, 3), hysteresis=2, dwell=8, while_off="refill"))
    with pytest.raises(ConfigError) as raised:
        translate(run, ENGINES["vllm"], [])
    offered = dict(
        problem.fix.partition(", or set policy.")[2].split("=") for problem in raised.value.problems
    )

    assert {"hysteresis": "0", "min_dwell_rounds": "0", "while_off": "warm"} == offered


def test_dropping_moves_no_boundary() -> None:
    held = schedule((4, 3), (9, 1), hysteresis=2, dwell=8, while_off="refill")
    free = schedule((4, 3), (9, 1))

    for engine in ENGINES.values():
        translation, header = translate(run_with(held), engine, DROPPABLE)
        assert 3 == len(header.left_out)
        assert translation == translate(run_with(free), engine, DROPPABLE)[0]
    assert {3, 1, 0} == set(policy_steps(free).values())
