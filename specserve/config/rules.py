"""Rules across sections that need no machine: what cannot work together."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from specserve.config.engine import TorchEngineConfig
from specserve.config.engine_rules import (
    attention_of_the_engine,
    draft_quantization_of_the_engine,
    drafter_of_the_engine,
    ngram_breadth,
    policy_of_the_engine,
    quantization_of_the_engine,
)
from specserve.config.policy import OffPolicy
from specserve.config.policy_rules import depth_problems, value_problems
from specserve.config.quote import hydra_value
from specserve.config.run import RunConfig
from specserve.config.speculation import (
    NgramSpeculation,
    NoSpeculation,
    SteppedSpeculation,
)
from specserve.errors import Problem
from specserve.rule_ids import RuleId


@dataclass(frozen=True, slots=True)
class Rule:
    """A check that reads only the sections `reads`, so that it runs while others are invalid."""

    reads: frozenset[str]
    find: Callable[[RunConfig], Iterator[Problem]]


def chain_length(config: RunConfig) -> Iterator[Problem]:
    """A chain verifies each drafted token and the root: num_steps + 1."""
    s = config.speculation
    if not isinstance(s, SteppedSpeculation) or s.topk > 1 or s.num_draft_tokens == "auto":
        return
    if s.num_draft_tokens != s.num_steps + 1:
        steps = s.num_draft_tokens - 1
        other = f", or speculation.num_steps={steps}" if steps <= 16 else ""
        yield Problem(
            rule=RuleId.CHAIN_LENGTH,
            key="speculation.num_draft_tokens",
            value=s.num_draft_tokens,
            expected=f"{s.num_steps + 1} (num_steps + 1, because topk=1 drafts a single chain)",
            fix=f"set speculation.num_draft_tokens={s.num_steps + 1}{other}",
        )


def tree_size(config: RunConfig) -> Iterator[Problem]:
    """A tree holds the root, topk nodes at depth 1, and topk² at each further depth."""
    s = config.speculation
    if not isinstance(s, SteppedSpeculation) or s.topk == 1 or s.num_draft_tokens == "auto":
        return
    most = tree_capacity(s.num_steps, s.topk)
    if s.num_draft_tokens > most:
        yield Problem(
            rule=RuleId.TREE_SIZE,
            key="speculation.num_draft_tokens",
            value=s.num_draft_tokens,
            expected=f"at most {most}, all that a tree of num_steps={s.num_steps} and "
            f"topk={s.topk} drafts (1 + topk + (num_steps - 1) * topk²)",
            fix=f"set speculation.num_draft_tokens={most}",
        )


def tree_capacity(num_steps: int, topk: int) -> int:
    """Most tokens, root included, that a tree can offer for verification."""
    return 1 + topk + (num_steps - 1) * topk**2


def policy_has_a_draft(config: RunConfig) -> Iterator[Problem]:
    """A policy that speculates needs something to draft with."""
    if isinstance(config.speculation, NoSpeculation) and not isinstance(config.policy, OffPolicy):
        yield Problem(
            rule=RuleId.POLICY_WITHOUT_DRAFT,
            key="policy",
            value=config.policy.kind,
            expected="off, because speculation is off and no draft is loaded",
            fix="choose policy=off, or speculation=eagle3_topk1",
        )


def policy_values(config: RunConfig) -> Iterator[Problem]:
    """A policy does not contradict itself."""
    yield from value_problems(config.policy)


def policy_depths(config: RunConfig) -> Iterator[Problem]:
    """A policy is no deeper than the rounds that are built."""
    if isinstance(config.speculation, SteppedSpeculation):
        yield from depth_problems(config.policy, config.speculation.num_steps)


def draft_quantization_has_a_draft(config: RunConfig) -> Iterator[Problem]:
    """A scheme named for the draft is meant for a draft."""
    scheme = config.quantization.draft
    draftless = isinstance(config.speculation, NoSpeculation | NgramSpeculation)
    if draftless and scheme not in ("none", "inherit"):
        yield Problem(
            rule=RuleId.QUANTIZED_DRAFT_WITHOUT_DRAFT,
            key="quantization.draft",
            value=scheme,
            expected=f"none or inherit, because speculation is {config.speculation.kind} and no "
            "draft is loaded",
            fix="set quantization.draft=none, or choose speculation=eagle3_topk1",
        )


def one_device_of_the_torch_engine(config: RunConfig) -> Iterator[Problem]:
    """The torch engine runs on one device of one machine."""
    if not isinstance(config.engine, TorchEngineConfig):
        return
    for name, count in config.parallel:
        if count != 1:
            yield Problem(
                rule=RuleId.ONE_DEVICE_OF_TORCH,
                key=f"parallel.{name}",
                value=count,
                expected="1, because the torch engine runs on one device",
                fix=f"set parallel.{name}=1, or choose engine=sglang",
            )


def nodes_share_the_gpus(config: RunConfig) -> Iterator[Problem]:
    """Every machine holds the same number of GPUs."""
    parallel = config.parallel
    if parallel.tensor_parallel % parallel.num_nodes:
        yield Problem(
            rule=RuleId.UNEVEN_NODES,
            key="parallel.tensor_parallel",
            value=parallel.tensor_parallel,
            expected=f"a multiple of parallel.num_nodes, {parallel.num_nodes}",
            fix=f"set parallel.tensor_parallel={parallel.num_nodes}, or parallel.num_nodes=1",
        )


def graph_sizes_increase(config: RunConfig) -> Iterator[Problem]:
    """Captured sizes are a sorted list without repeats."""
    sizes = config.cuda_graph.batch_sizes
    if sizes == "auto":
        return
    ordered = sorted(set(sizes))
    if not sizes or sizes != ordered:
        yield Problem(
            rule=RuleId.GRAPH_SIZES_UNSORTED,
            key="cuda_graph.batch_sizes",
            value=sizes,
            expected="increasing sizes without repeats, or auto",
            fix=f"set cuda_graph.batch_sizes={hydra_value(ordered) if sizes else 'auto'}",
        )


def budget_holds_one_request(config: RunConfig) -> Iterator[Problem]:
    """A request of full length must fit into the KV budget."""
    budget, context = config.scheduler.max_kv_tokens, config.model.context_length
    if budget != "auto" and context != "auto" and budget < context:
        yield Problem(
            rule=RuleId.KV_BUDGET_BELOW_CONTEXT,
            key="scheduler.max_kv_tokens",
            value=budget,
            expected=f"at least model.context_length, {context}, so that one request fits",
            fix=f"set scheduler.max_kv_tokens={context}, or model.context_length={budget}",
        )


RULES: tuple[Rule, ...] = (
    Rule(frozenset({"speculation"}), chain_length),
    Rule(frozenset({"speculation"}), tree_size),
    Rule(frozenset({"speculation", "policy"}), policy_has_a_draft),
    Rule(frozenset({"policy"}), policy_values),
    Rule(frozenset({"speculation", "policy"}), policy_depths),
    Rule(frozenset({"speculation", "quantization"}), draft_quantization_has_a_draft),
    Rule(frozenset({"attention", "engine"}), attention_of_the_engine),
    Rule(frozenset({"parallel", "engine"}), one_device_of_the_torch_engine),
    Rule(frozenset({"parallel"}), nodes_share_the_gpus),
    Rule(frozenset({"quantization", "engine"}), quantization_of_the_engine),
    Rule(frozenset({"quantization", "speculation", "engine"}), draft_quantization_of_the_engine),
    Rule(frozenset({"speculation", "engine"}), drafter_of_the_engine),
    Rule(frozenset({"speculation", "policy", "engine"}), policy_of_the_engine),
    Rule(frozenset({"speculation"}), ngram_breadth),
    Rule(frozenset({"cuda_graph"}), graph_sizes_increase),
    Rule(frozenset({"scheduler", "model"}), budget_holds_one_request),
)
