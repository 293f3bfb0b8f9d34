from specserve.policy.fixed import Always, Off
from specserve.policy.observation import Observation

CROWD = Observation(running_decodes=10_000, last_round=None, elapsed_seconds=1e6)


def test_off_never_drafts() -> None:
    assert 0 == Off().decide(CROWD).num_steps


def test_always_drafts_at_the_built_depth_whatever_it_sees() -> None:
    decision = Always(5).decide(CROWD)

    assert 5 == decision.num_steps
    assert "5 draft steps" in decision.reason
