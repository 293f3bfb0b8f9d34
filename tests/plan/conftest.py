"""Facts to plan from: recorded ones, and those of a tiny real pair; runs, and fixes applied."""

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from specserve.config.load import load_run
from specserve.config.run import RunConfig
from specserve.errors import ConfigError, Problem
from specserve.facts import Facts, load_facts
from specserve.plan import Plan, make_plan

RECORDED = Path(__file__).parent.parent / "data" / "facts"
_SETTING = re.compile(r"[a-z_.]+=(?:\[[^\]]*\]|[^\s,\[\]]+)")


@pytest.fixture(scope="session")
def h200() -> Facts:
    """One H200; Llama 3.1 8B and its head, whose context is 2048."""
    return load_facts(RECORDED / "h200.json")


@pytest.fixture(scope="session")
def kimi() -> Facts:
    """Eight GPUs of 96 GB; Kimi K2.5."""
    return load_facts(RECORDED / "kimi_k25.json")


@pytest.fixture(scope="session")
def cpu(h200: Facts) -> Facts:
    """The same pair on a machine with 64 GiB and no GPU."""
    machine = h200.machine.model_copy(update={"gpus": (), "cpu_count": 8, "memory_bytes": 2**36})
    return h200.model_copy(update={"machine": machine})


@cache
def run_of(*overrides: str) -> RunConfig:
    """topk1_v2 on Llama 3.1 8B at the draft's context, with the given overrides after it."""
    model = ["model=llama31_8b", "model.context_length=2048"]
    return load_run(["+experiment=topk1_v2", *model, *overrides]).config


@pytest.fixture(scope="session")
def make_run() -> Callable[..., RunConfig]:
    return run_of


@pytest.fixture(scope="session")
def plan_of() -> Callable[..., Plan]:
    """The plan of a run with the given overrides."""

    def plan(facts: Facts, *overrides: str) -> Plan:
        return make_plan(run_of(*overrides), facts)

    return plan


@pytest.fixture(scope="session")
def problems_of() -> Callable[..., list[Problem]]:
    """Why no plan can be made of a run with the given overrides."""

    def problems(facts: Facts, *overrides: str) -> list[Problem]:
        with pytest.raises(ConfigError) as caught:
            make_plan(run_of(*overrides), facts)
        return list(caught.value.problems)

    return problems


@pytest.fixture(scope="session")
def advice() -> Callable[[Problem], list[list[str]]]:
    """The alternatives that a fix offers, each as the overrides that it tells to set."""

    def alternatives(problem: Problem) -> list[list[str]]:
        return [
            settings for part in problem.fix.split(", or ") if (settings := _SETTING.findall(part))
        ]

    return alternatives
