"""Loops built in this process, driven as fast as they go: what the benchmark scripts compare."""

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from transformers import AutoTokenizer

from specserve.config.load import load_run
from specserve.config.paths import resolve_path
from specserve.engine import GenerationRequest, Sampling
from specserve.facts import Facts, gather_facts
from specserve.plan import Plan, make_plan
from specserve.torch_engine.build import build
from specserve.torch_engine.loop import Loop
from specserve.torch_engine.process import make_loop
from specserve.worker.phases import PhaseRecord, PhaseRunner

GREEDY = Sampling(temperature=0.0, top_p=1.0, top_k=None, min_p=0.0, seed=0, logit_bias={})


class ForwardClock:
    """Adds up the seconds inside the forward passes of a loop's models."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def timed(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """`function`, its time counted."""

        def call(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - whatever the pass takes
            began = time.perf_counter()
            try:
                return function(*args, **kwargs)
            finally:
                self.seconds += time.perf_counter() - began

        return call


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """A loop, what it was planned from, and the clock of its forward passes."""

    facts: Facts
    plan: Plan
    loop: Loop
    clock: ForwardClock
    records: tuple[PhaseRecord, ...]

    def generate(self, prompts: Sequence[tuple[int, ...]], num_tokens: int) -> float:
        """Serve all prompts at once; output tokens per second."""
        began = time.perf_counter()
        self.outputs(prompts, num_tokens)
        return len(prompts) * num_tokens / (time.perf_counter() - began)

    def outputs(self, prompts: Sequence[tuple[int, ...]], num_tokens: int) -> list[list[int]]:
        """Serve all prompts at once; their greedy tokens."""
        found: list[list[int]] = [[] for _ in prompts]
        for index, prompt in enumerate(prompts):
            self.loop.submit(greedy_request(str(index), prompt, num_tokens))
        while self.loop.has_work:
            for chunk in self.loop.step():
                found[int(chunk.request_id)] += chunk.token_ids
        return found

    def generate_each(self, prompts: Sequence[tuple[int, ...]], num_tokens: int) -> float:
        """Serve one prompt after the other; output tokens per second."""
        began = time.perf_counter()
        for prompt in prompts:
            self.generate([prompt], num_tokens)
        return len(prompts) * num_tokens / (time.perf_counter() - began)


def make_arm(overrides: Sequence[str]) -> Arm:
    """Build the loop of a configuration in this process."""
    config = load_run(overrides).config
    records: list[PhaseRecord] = []
    facts = gather_facts(config)
    plan = make_plan(config, facts)
    worker = build(plan, PhaseRunner(emit=records.append))
    clock = ForwardClock()
    models = [worker.target.model, *([worker.draft] if worker.draft else [])]
    for model in models:
        for name in ("forward", "logits", "fuse"):
            if hasattr(model, name):
                setattr(model, name, clock.timed(getattr(model, name)))
    return Arm(facts=facts, plan=plan, loop=make_loop(worker), clock=clock, records=tuple(records))


def greedy_request(identity: str, prompt: tuple[int, ...], num_tokens: int) -> GenerationRequest:
    """Exactly `num_tokens` greedy tokens behind `prompt`."""
    return GenerationRequest(
        request_id=identity,
        prompt_token_ids=prompt,
        max_tokens=num_tokens,
        sampling=GREEDY,
        stop=(),
        stop_token_ids=(),
        top_logprobs=None,
        speculation=True,
        ignore_eos=True,
    )


def planned_threads() -> int:
    """The threads that a plan for this machine gives the engine."""
    config = load_run(["+experiment=baseline"]).config
    return make_plan(config, gather_facts(config)).num_threads


def held_out_prompts(count: int) -> list[tuple[int, ...]]:
    """Token ids of the demo's first held-out prompts."""
    tokenizer = AutoTokenizer.from_pretrained(resolve_path("bundled:demo/target"))
    lines = Path(resolve_path("bundled:demo/held_out_prompts.jsonl")).read_text("utf-8")
    texts = [json.loads(line)["prompt"] for line in lines.splitlines()[:count]]
    return [tuple(tokenizer.encode(text)) for text in texts]
