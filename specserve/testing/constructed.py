"""A target and an EAGLE-3 head of any shape whose output and acceptance are known beforehand.

The arithmetic costs what a real pair of that shape costs (zero matrices let a GPU run a little
faster, so compare arms with each other only). What it cannot show is the cost of stale draft
state: this draft needs none.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import torch

from specserve.testing.constructed_tensors import draft_tensors, target_tensors
from specserve.testing.constructed_tokenizer import END_ID, FIRST_FREE_ID, save_tokenizer
from specserve.testing.cycle_weights import NORM_EPS, ROPE_THETA, PairShape, cycle_weights
from specserve.testing.shards import save_shards
from specserve.testing.token_cycle import TokenCycle, make_successors

DtypeName = Literal["float32", "bfloat16", "float16"]

_CYCLE_FILE = "cycle.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConstructedPair:
    """Two checkpoint folders, and in `cycle` everything they will say."""

    target_folder: Path
    draft_folder: Path
    cycle: TokenCycle

    def expected_output(
        self, prompt_ids: Sequence[int], num_tokens: int, *, ignore_eos: bool = False
    ) -> tuple[int, ...]:
        """The greedy continuation, exactly."""
        return self.cycle.output(prompt_ids, num_tokens, ignore_eos=ignore_eos)

    def expected_accepted(
        self, prompt_ids: Sequence[int], num_rounds: int, num_steps: int
    ) -> tuple[int, ...]:
        """Accepted draft tokens of each of the first rounds of a chain, exactly."""
        return self.cycle.accepted(prompt_ids, num_rounds, num_steps)

    def expected_acceptance_length(self, num_steps: int) -> float:
        """Tokens per round of a chain of `num_steps`, on average over a long text."""
        return self.cycle.acceptance_length(num_steps)


def construct_pair(
    folder: Path,
    *,
    vocab_size: int = 512,
    cycle: int = 200,
    num_layers: int = 8,
    hidden_size: int = 128,
    intermediate_size: int = 256,
    num_heads: int = 4,
    num_kv_heads: int = 2,
    head_dim: int = 32,
    context_length: int = 1024,
    draft_vocab_size: int | None = None,
    p: float = 0.7,
    eos_position: int | None = None,
    seed: int = 0,
    dtype: DtypeName = "float32",
) -> ConstructedPair:
    """Write folder/target and folder/draft in the published layout, with a tokenizer.

    `cycle` is the number of tokens that are ever emitted, the ids from 257 on. `p` is the share
    of them after which the draft is right: 1.0 is a perfect draft, 0.0 one that is never right.
    The draft vocabulary is the cycle, or the cycle and other ids up to `draft_vocab_size`. The
    end token is never emitted, unless `eos_position` makes one of the cycle's tokens the end.

    Raises ValueError, naming the argument, for sizes that cannot hold the construction.
    """
    shape = PairShape(
        vocab_size=vocab_size,
        draft_vocab_size=cycle if draft_vocab_size is None else draft_vocab_size,
        num_layers=num_layers,
        hidden_size=hidden_size,
        intermediate_size=intermediate_size,
        num_heads=num_heads,
        num_kv_heads=num_kv_heads,
        head_dim=head_dim,
        context_length=context_length,
    )
    _check(shape, cycle, p, eos_position)
    token_cycle = TokenCycle(
        first_id=FIRST_FREE_ID,
        successors=make_successors(cycle, p, seed),
        eos_id=END_ID if eos_position is None else FIRST_FREE_ID + eos_position,
    )
    _write(folder, token_cycle, shape, seed, dtype)
    return load_pair(folder)


def load_pair(folder: Path) -> ConstructedPair:
    """The pair that `construct_pair` wrote to `folder`."""
    record = json.loads((folder / _CYCLE_FILE).read_text())
    return ConstructedPair(
        target_folder=folder / "target",
        draft_folder=folder / "draft",
        cycle=TokenCycle(**{**record, "successors": tuple(record["successors"])}),
    )


def _write(folder: Path, cycle: TokenCycle, shape: PairShape, seed: int, dtype: DtypeName) -> None:
    weights = cycle_weights(cycle, shape, seed)
    generator = torch.Generator().manual_seed(seed)
    target, draft, torch_dtype = folder / "target", folder / "draft", getattr(torch, dtype)
    save_shards(target_tensors(weights, generator), target, torch_dtype)
    save_shards(draft_tensors(weights, generator), draft, torch_dtype)
    save_tokenizer(target, shape.vocab_size, shape.context_length, cycle.eos_id)
    common = _common_config(shape, cycle.eos_id, dtype)
    _write_json(
        target / "config.json",
        {
            "architectures": ["LlamaForCausalLM"],
            **common,
            "num_hidden_layers": shape.num_layers,
        },
    )
    _write_json(target / "generation_config.json", {"eos_token_id": cycle.eos_id})
    _write_json(
        draft / "config.json",
        {
            "architectures": ["LlamaForCausalLMEagle3"],
            **common,
            "num_hidden_layers": 1,
            "draft_vocab_size": shape.draft_vocab_size,
            "target_hidden_size": shape.hidden_size,
            "eagle_config": {
                # The published key counts by a layer's output.
                "eagle_aux_hidden_state_layer_ids": [i - 1 for i in shape.aux_layer_inputs],
                "use_aux_hidden_state": True,
            },
        },
    )
    _write_json(folder / _CYCLE_FILE, asdict(cycle))


def _common_config(shape: PairShape, eos_id: int, dtype: DtypeName) -> dict[str, Any]:
    return {
        "model_type": "llama",
        "hidden_act": "silu",
        "hidden_size": shape.hidden_size,
        "intermediate_size": shape.intermediate_size,
        "num_attention_heads": shape.num_heads,
        "num_key_value_heads": shape.num_kv_heads,
        "head_dim": shape.head_dim,
        "max_position_embeddings": shape.context_length,
        "rms_norm_eps": NORM_EPS,
        "rope_theta": ROPE_THETA,
        "attention_bias": False,
        "mlp_bias": False,
        "tie_word_embeddings": False,
        "torch_dtype": dtype,
        "vocab_size": shape.vocab_size,
        "bos_token_id": None,
        "eos_token_id": eos_id,
        "pad_token_id": END_ID,
    }


def _write_json(path: Path, content: dict[str, Any]) -> None:
    path.write_text(json.dumps(content, indent=2) + "\n")


def _check(shape: PairShape, cycle: int, p: float, eos_position: int | None) -> None:
    """Every wrong argument at once."""
    wrong = [
        f"{name}={value}: expected {expected}"
        for name, value, holds, expected in (
            ("cycle", cycle, cycle >= 8, "at least 8"),
            (
                "vocab_size",
                shape.vocab_size,
                shape.vocab_size >= FIRST_FREE_ID + cycle,
                f"at least {FIRST_FREE_ID + cycle} (bytes, end token and the cycle)",
            ),
            (
                "draft_vocab_size",
                shape.draft_vocab_size,
                cycle <= shape.draft_vocab_size <= shape.vocab_size,
                f"{cycle} (the cycle) to vocab_size",
            ),
            ("num_layers", shape.num_layers, shape.num_layers >= 8, "at least 8"),
            (
                "num_heads",
                shape.num_heads,
                shape.num_heads % shape.num_kv_heads == 0,
                f"a multiple of num_kv_heads={shape.num_kv_heads}",
            ),
            ("head_dim", shape.head_dim, shape.head_dim % 4 == 0, "a multiple of 4"),
            ("p", p, 0 <= p <= 1, "0 to 1"),
            (
                "eos_position",
                eos_position,
                eos_position is None or 0 <= eos_position < cycle,
                f"0 to {cycle - 1}, or None",
            ),
        )
        if not holds
    ]
    if wrong:
        raise ValueError("; ".join(wrong))
