from pathlib import Path

from specserve.check.machine import PlanningMachine
from specserve.config.load import load_run

KIMI = ("+experiment=kimi_k25_int4_topk1_v2",)
FACTS = Path(__file__).parents[1] / "data/facts/kimi_k25.json"


def test_a_recorded_machine_is_planned_for_with_its_own_gpus_and_checkpoints() -> None:
    machine = PlanningMachine(FACTS)
    facts = machine.facts_of(load_run(KIMI).config)

    assert not machine.is_here
    assert 8 == machine.num_gpus == len(facts.machine.gpus)
    assert facts.target is not None
    assert "8 × NVIDIA H20" in str(machine)


def test_a_checkpoint_is_read_once_for_all_runs() -> None:
    machine, config = PlanningMachine(None), load_run(()).config

    assert machine.is_here
    assert machine.facts_of(config).target is machine.facts_of(config).target


def test_what_was_not_recorded_is_looked_for_here() -> None:
    machine = PlanningMachine(FACTS)

    assert machine.facts_of(load_run(()).config).target is not None
