"""The training code's models: equal to serving, step by step."""

import dataclasses
import math
from pathlib import Path

import pytest
import torch
from demo_training.checkpoint import (
    load_draft,
    load_target,
    save_draft,
    save_target,
    transformers_difference,
)
from demo_training.draft import most_frequent_ids, step_losses
from demo_training.eagle3 import Draft
from demo_training.evaluation import Trace, figures, repeated_rate, speculate
from demo_training.generation import own_text
from demo_training.llama import Llama, initialise
from demo_training.schedule import learning_rate, steps_until
from demo_training.settings import SMOKE, Generation, Shape
from demo_training.target import bits_per_byte, held_out_loss
from safetensors.torch import load_file
from torch import Tensor

SHAPE = Shape(
    vocab_size=64,
    num_layers=8,
    hidden_size=48,
    intermediate_size=64,
    num_heads=4,
    num_kv_heads=2,
    head_dim=16,
    context_length=64,
)
CPU = torch.device("cpu")


@pytest.fixture
def target() -> Llama:
    """Random, with weights large enough that greedy text varies."""
    torch.manual_seed(0)
    model = Llama(SHAPE)
    initialise(model, 1)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim > 1:
                parameter.mul_(4)
    return model.eval().requires_grad_(False)


@pytest.fixture
def draft() -> Draft:
    torch.manual_seed(1)
    model = Draft(SHAPE, torch.arange(0, 64, 2))
    for parameter in model.parameters():
        if parameter.ndim > 1:
            torch.nn.init.normal_(parameter, std=0.2)
    return model.eval().requires_grad_(False)


def tokens_of(num_rows: int, num_tokens: int) -> Tensor:
    generator = torch.Generator().manual_seed(2)
    return torch.randint(64, (num_rows, num_tokens), generator=generator)


def test_an_unrolled_step_sees_what_it_sees_when_it_serves(target: Llama, draft: Draft) -> None:
    """Training-time test against one served chain for each base: same hidden states."""
    tokens, num_steps = tokens_of(1, 20), 4
    features = target(tokens, aux_layer_inputs=SHAPE.aux_layer_inputs).features
    embedded = target.model.embed_tokens(tokens)

    unrolled = draft.unroll(embedded, features, num_steps)

    assert (num_steps, 16) == (len(unrolled), unrolled[0].shape[1])
    for base in (0, 1, 7, 15):
        fused = draft.fc(features[:, : base + 1])
        for step in range(num_steps):
            entries = embedded[:, 1 : base + step + 2]
            hidden = draft.run(entries, fused)[:, -1:]
            torch.testing.assert_close(hidden[:, 0], unrolled[step][:, base])
            fused = torch.cat((fused, hidden), dim=1)


def test_labels_are_what_the_target_says_where_the_proposal_would_stand(
    target: Llama, draft: Draft
) -> None:
    tokens = tokens_of(3, 20)

    losses = step_losses(target, draft, tokens, 3)

    logits = target(tokens).logits
    features = target(tokens, aux_layer_inputs=SHAPE.aux_layer_inputs).features
    outputs = draft.unroll(target.model.embed_tokens(tokens), features, 3)
    for step, hidden in enumerate(outputs):
        entropies, hits = [], []
        for row in range(3):
            for base in range(17):
                label = logits[row, base + step + 1]
                proposal = draft.logits(hidden[row, base])
                hits.append(2 * int(proposal.argmax()) == int(label.argmax()))
                if int(label.argmax()) % 2 == 0:
                    entropies.append(-(label[::2].softmax(-1) * proposal.log_softmax(-1)).sum())
        torch.testing.assert_close(losses.loss[step], torch.stack(entropies).mean())
        assert pytest.approx(sum(hits) / len(hits)) == float(losses.accuracy[step])


def test_the_cache_changes_nothing(target: Llama) -> None:
    tokens = tokens_of(2, 12)
    cache = target.empty_cache(2, 12)

    pieces = [target(tokens[:, :5], cache=cache).logits]
    pieces += [target(tokens[:, i : i + 1], cache=cache, start=i).logits for i in range(5, 12)]

    torch.testing.assert_close(target(tokens).logits, torch.cat(pieces, dim=1))


def test_speculation_says_what_greedy_decoding_says(target: Llama, draft: Draft) -> None:
    prompt, text = tokens_of(1, 5)[0].tolist(), tokens_of(1, 5)
    while text.shape[1] < 35:
        text = torch.cat((text, target(text).logits[:, -1:].argmax(-1)), dim=1)

    trace = speculate(target, draft, prompt, num_steps=3, max_new_tokens=30, end_id=-1)

    assert tuple(text[0, 5:].tolist()) == trace.tokens
    # Prefill gives one token, each round what it accepts and one more; the last may overshoot.
    assert 30 <= 1 + sum(trace.accepted) + len(trace.accepted) <= 33


def test_speculation_ends_with_the_end_token(target: Llama, draft: Draft) -> None:
    prompt = tokens_of(1, 5)[0].tolist()
    whole = speculate(target, draft, prompt, num_steps=3, max_new_tokens=30, end_id=-1).tokens

    end_id = whole[9]
    trace = speculate(target, draft, prompt, num_steps=3, max_new_tokens=30, end_id=end_id)

    assert whole[: whole.index(end_id) + 1] == trace.tokens


def test_own_text_is_greedy_or_sampled_by_row(target: Llama) -> None:
    sizes = Generation(
        num_sequences=8, batch_size=8, prompt_tokens=4, sequence_tokens=24, lead_in_tokens=5
    )
    generator = torch.Generator().manual_seed(0)
    torch.manual_seed(0)

    text = own_text(target, tokens_of(1, 500)[0], sizes, generator)

    choices = target(text).logits.argmax(-1)
    follows = choices[:, 3:-1] == text[:, 4:]
    assert (8, 24) == tuple(text.shape)
    assert [True, True] * 2 == follows[[0, 1, 4, 5]].all(dim=1).tolist()
    assert [True] * 2 == follows[[2, 6], 5:].all(dim=1).tolist()
    assert not follows[[2, 6], :5].all()
    assert [False] * 2 == follows[[3, 7], 5:].all(dim=1).tolist()


def test_a_saved_target_is_what_transformers_loads(target: Llama, tmp_path: Path) -> None:
    save_target(target, tmp_path, 0)
    loaded = load_target(tmp_path, CPU)

    assert transformers_difference(tmp_path, loaded, tokens_of(2, 30)) < 1e-4
    # A control: the check sees a rotation that is off.
    wrong = Llama(dataclasses.replace(SHAPE, rope_theta=500.0))
    wrong.load_state_dict(loaded.state_dict())
    assert transformers_difference(tmp_path, wrong.eval(), tokens_of(2, 30)) > 1e-2


def test_a_saved_draft_is_rounded_once_and_maps_ids_by_offset(
    target: Llama, draft: Draft, tmp_path: Path
) -> None:
    save_draft(draft, tmp_path, 0)
    loaded = load_draft(tmp_path, target, CPU)

    tensors = load_file(tmp_path / "model.safetensors")
    assert torch.equal(draft.draft_ids, loaded.draft_ids)
    assert torch.equal(torch.arange(32), tensors["d2t"])
    assert torch.arange(0, 64, 2).tolist() == tensors["t2d"].nonzero().flatten().tolist()
    assert torch.equal(draft.fc.weight.bfloat16().float(), loaded.fc.weight)


def test_the_draft_vocabulary_is_the_most_frequent_ids_in_order() -> None:
    text = torch.tensor([[5, 5, 5, 9], [1, 1, 9, 7]])

    assert [1, 5, 9] == most_frequent_ids(text, 12, 3).tolist()


def test_held_out_loss_counts_every_token_but_the_first(target: Llama) -> None:
    with torch.no_grad():
        target.model.embed_tokens.weight.zero_()

    assert pytest.approx(math.log(64)) == held_out_loss(target, tokens_of(1, 500)[0], 30)
    assert pytest.approx(6 / 3) == bits_per_byte(math.log(64), num_tokens=100, num_bytes=300)


def test_figures_stand_beside_their_counters() -> None:
    traces = [Trace((1, 2, 3, 4, 5, 6), (3, 0)), Trace((1, 2, 1), (1,))]

    shown = figures(traces, 3)
    assert 3 == shown["verify_rounds"]
    assert 9 == shown["drafted"]
    assert 4 == shown["accepted"]
    assert pytest.approx(7 / 3) == shown["acceptance_length"]
    assert pytest.approx([2 / 3, 1 / 2, 1.0]) == shown["acceptance_rate_by_step"]


def test_repeated_grams_are_counted_within_a_text() -> None:
    assert 0.0 == repeated_rate([(1, 2, 3, 4, 5)], 4)
    assert pytest.approx(4 / 5) == repeated_rate([(7,) * 8], 4)
    assert 0.0 == repeated_rate([(1, 2, 3, 4), (1, 2, 3, 4)], 4)


def test_the_learning_rate_rises_and_falls_with_the_clock() -> None:
    run = SMOKE.target
    rates = [learning_rate(run, done) for done in (0.0, run.warmup_rate, 0.5, 1.0)]

    assert rates[0] < 0.1 * rates[1]
    assert pytest.approx(run.learning_rate, rel=0.01) == rates[1]
    assert rates[1] > rates[2] > rates[3] == pytest.approx(run.learning_rate / 100)


def test_a_run_makes_at_least_two_steps_and_stops_with_its_minutes() -> None:
    assert [0, 1] == [progress.step for progress in steps_until(0.0)]


def test_training_on_one_batch_lowers_the_loss_of_every_step(target: Llama) -> None:
    """The whole of step_losses is differentiable into the draft, and only there."""
    torch.manual_seed(3)
    draft, tokens = Draft(SHAPE, torch.arange(64)), tokens_of(8, 24)
    initialise(draft, 1)
    optimizer = torch.optim.AdamW(draft.parameters(), lr=5e-3)
    first = step_losses(target, draft, tokens, 3)
    for _ in range(60):
        losses = step_losses(target, draft, tokens, 3)
        losses.loss.sum().backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        optimizer.zero_grad()

    assert bool((losses.loss < first.loss).all())
    assert bool((losses.accuracy > first.accuracy + 0.3).all())
    assert all(parameter.grad is None for parameter in target.parameters())
