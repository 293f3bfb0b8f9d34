"""Shapes and training settings of the demo pair; `FULL` is what ships, `SMOKE` tests the script."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """A Llama of this shape; the draft is one layer of the same widths."""

    vocab_size: int
    num_layers: int
    hidden_size: int
    intermediate_size: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    context_length: int
    rope_theta: float = 10_000.0
    norm_eps: float = 1e-5

    @property
    def aux_layer_inputs(self) -> tuple[int, int, int]:
        """The layers whose *input* the draft is fed: the guess that engines fall back on."""
        return (2, self.num_layers // 2, self.num_layers - 3)


@dataclass(frozen=True, slots=True, kw_only=True)
class Training:
    """One training run. The schedule follows the wall clock, so the budget is always met."""

    minutes: float
    batch_size: int
    sequence_tokens: int
    learning_rate: float
    weight_decay: float
    dropout: float = 0.0
    warmup_rate: float = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class Generation:
    """The target's own text, which the draft is trained on beside the corpus."""

    num_sequences: int
    batch_size: int
    prompt_tokens: int
    sequence_tokens: int
    lead_in_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """Held-out prompts, greedy, a chain of `num_steps`."""

    num_prompts: int
    min_prompt_tokens: int
    max_prompt_tokens: int
    max_new_tokens: int
    num_steps: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Everything that the figures depend on, the corpus and the machine apart."""

    seed: int
    max_corpus_bytes: int | None
    shape: Shape
    target: Training
    draft: Training
    draft_vocab_size: int
    num_unrolled_steps: int
    step_weight: float
    generation: Generation
    evaluation: Evaluation


FULL = Settings(
    seed=20,
    max_corpus_bytes=None,
    shape=Shape(
        vocab_size=2048,
        num_layers=14,
        hidden_size=192,
        intermediate_size=512,
        num_heads=6,
        num_kv_heads=3,
        head_dim=32,
        context_length=1024,
    ),
    target=Training(
        minutes=6.0,
        batch_size=192,
        sequence_tokens=512,
        learning_rate=2.5e-3,
        weight_decay=0.3,  # strong, with dropout: the corpus is seen a hundred times
        dropout=0.1,
    ),
    draft=Training(
        minutes=4.5,
        batch_size=64,
        sequence_tokens=512,
        learning_rate=2e-3,
        weight_decay=0.01,
    ),
    draft_vocab_size=1024,
    num_unrolled_steps=5,
    step_weight=0.8,
    generation=Generation(
        num_sequences=16_384,
        batch_size=2048,
        prompt_tokens=96,
        sequence_tokens=512,
        lead_in_tokens=32,
    ),
    evaluation=Evaluation(
        num_prompts=64,
        min_prompt_tokens=64,
        max_prompt_tokens=128,
        max_new_tokens=128,
        num_steps=3,
    ),
)

SMOKE = Settings(
    seed=20,
    max_corpus_bytes=400_000,
    shape=Shape(
        vocab_size=512,
        num_layers=8,
        hidden_size=64,
        intermediate_size=128,
        num_heads=2,
        num_kv_heads=1,
        head_dim=32,
        context_length=256,
    ),
    target=Training(
        minutes=0.1,
        batch_size=8,
        sequence_tokens=96,
        learning_rate=3e-3,
        weight_decay=0.1,
        dropout=0.05,
    ),
    draft=Training(
        minutes=0.1,
        batch_size=8,
        sequence_tokens=96,
        learning_rate=3e-3,
        weight_decay=0.01,
    ),
    draft_vocab_size=256,
    num_unrolled_steps=4,
    step_weight=0.8,
    generation=Generation(
        num_sequences=32,
        batch_size=16,
        prompt_tokens=24,
        sequence_tokens=96,
        lead_in_tokens=8,
    ),
    evaluation=Evaluation(
        num_prompts=3,
        min_prompt_tokens=16,
        max_prompt_tokens=64,
        max_new_tokens=24,
        num_steps=3,
    ),
)
