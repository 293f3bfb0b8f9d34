from pathlib import Path

import pytest

from specserve.config.policy import AlwaysPolicy, BatchThresholdPolicy, OffPolicy, WhileOff
from specserve.engine import Mode
from specserve.errors import ConfigError
from specserve.plan import DraftPlan, SpeculationPlan
from specserve.torch_engine.steering import Steering


def speculation(while_off: WhileOff = "skip") -> SpeculationPlan:
    draft = DraftPlan(
        path=str(Path("draft")),
        config={},
        dtype="float32",
        quantization="none",
        quantization_group_size=None,
        aux_layer_inputs=(2, 4, 5),
        draft_vocab_size=10,
        num_kv_heads=1,
        head_dim=8,
        borrowed=(),
    )
    return SpeculationPlan(
        num_steps=3, topk=1, num_draft_tokens=4, while_off=while_off, draft=draft
    )


def threshold(resume_at: int = 2, while_off: WhileOff = "warm") -> BatchThresholdPolicy:
    return BatchThresholdPolicy(
        kind="batch_threshold",
        disable_above=4,
        resume_at=resume_at,
        min_dwell_rounds=0,
        while_off=while_off,
    )


def test_a_switch_is_counted_once_and_its_time_runs_from_it() -> None:
    now = [100.0]
    steering = Steering(threshold(), speculation(), clock=lambda: now[0])
    for running, seconds in ((4, 1.0), (5, 2.0), (6, 3.0)):
        now[0] += seconds
        steering.decide(running)
    state = steering.state()

    assert (Mode.PLAIN, 0, 1) == (state.mode, state.num_steps, state.switches)
    assert 3.0 == state.since_seconds
    assert "6 running decodes are more than disable_above=4" == state.reason


def test_a_new_policy_is_in_force_at_once() -> None:
    steering = Steering(AlwaysPolicy(kind="always"), speculation())

    state = steering.replace(OffPolicy(kind="off"), 1)

    assert (Mode.PLAIN, 1) == (state.mode, state.switches)
    assert OffPolicy(kind="off") == state.policy


def test_a_threshold_says_what_becomes_of_the_draft_while_off_else_the_plan_does() -> None:
    assert "warm" == Steering(threshold(), speculation("skip")).while_off
    assert "refill" == Steering(OffPolicy(kind="off"), speculation("refill")).while_off
    assert "skip" == Steering(OffPolicy(kind="off"), None).while_off


def test_what_was_not_built_is_refused_and_the_old_policy_stays() -> None:
    steering = Steering(AlwaysPolicy(kind="always"), speculation("warm"))

    with pytest.raises(ConfigError, match=r"policy\.while_off='refill'.*set policy.while_off=warm"):
        steering.replace(threshold(while_off="refill"), 1)
    with pytest.raises(ConfigError, match=r"policy\.resume_at=9.*set policy\.resume_at=4"):
        steering.replace(threshold(resume_at=9), 1)
    assert AlwaysPolicy(kind="always") == steering.state().policy
    with pytest.raises(ConfigError, match=r"policy='always'.*no draft was built"):
        Steering(AlwaysPolicy(kind="always"), None)
