from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specserve.checkpoint.header import CheckpointFacts, TensorHeader
from specserve.checkpoint.vocabulary import vocabulary_problems

VOCAB, DRAFT_VOCAB = 100, 40
CHOSEN = list(range(0, 80, 2))
D2T = [target - i for i, target in enumerate(CHOSEN)]
T2D = [i in CHOSEN for i in range(VOCAB)]


def head(
    d2t: Sequence[int] | None,
    t2d: Sequence[bool] | None,
    *,
    d2t_header: TensorHeader | None = None,
    t2d_header: TensorHeader | None = None,
) -> CheckpointFacts:
    tensors = {}
    if d2t is not None:
        tensors["d2t"] = d2t_header or TensorHeader(dtype="I64", shape=(len(d2t),))
    if t2d is not None:
        tensors["t2d"] = t2d_header or TensorHeader(dtype="BOOL", shape=(len(t2d),))
    return CheckpointFacts(
        path="/d",
        config={},
        generation_config={},
        tensors=tensors,
        d2t=None if d2t is None or d2t_header else tuple(d2t),
        t2d=None if t2d is None or t2d_header else tuple(t2d),
        has_tokenizer=False,
        tokenizer_vocab_size=None,
        weight_bytes=0,
        sha256="",
    )


def found(draft: CheckpointFacts, draft_vocab_size: int = DRAFT_VOCAB) -> list[str]:
    problems = vocabulary_problems(draft, draft_vocab_size=draft_vocab_size, vocab_size=VOCAB)
    return [problem.expected for problem in problems]


def test_a_map_and_a_mask_that_agree_are_accepted() -> None:
    assert [] == found(head(D2T, T2D))


def test_the_map_is_enough_without_the_mask() -> None:
    assert [] == found(head(D2T, None))


def test_zero_offsets_with_a_mask_on_other_ids_disagree() -> None:
    [problem] = found(head([0] * DRAFT_VOCAB, T2D))

    assert "d2t and t2d to name the same target ids, but they differ in 40, the first" in problem


def test_target_ids_in_place_of_offsets_run_out_of_range() -> None:
    """The usual mistake: d2t holding ids doubles them."""
    [problem] = found(head([60 + i for i in range(DRAFT_VOCAB)], T2D))

    assert "within 0..99, but draft id 20 becomes 100 (20 ids are outside)" in problem


def test_an_offset_below_zero_is_out_of_range() -> None:
    [problem] = found(head([-1, *D2T[1:]], T2D))

    assert "draft id 0 becomes -1" in problem


def test_two_draft_ids_for_one_target_id_are_refused() -> None:
    [problem] = found(head([D2T[0], CHOSEN[0] - 1, *D2T[2:]], None))

    assert "each draft id its own target id, but 1 are double" in problem


@pytest.mark.parametrize(
    "header", [TensorHeader(dtype="F32", shape=(40,)), TensorHeader(dtype="I64", shape=(41,))]
)
def test_d2t_has_one_integer_for_each_draft_id(header: TensorHeader) -> None:
    [problem] = found(head(D2T, None, d2t_header=header))

    assert f"shape [40], found {header.dtype} {list(header.shape)}" in problem


@pytest.mark.parametrize(
    "header", [TensorHeader(dtype="I64", shape=(100,)), TensorHeader(dtype="BOOL", shape=(40,))]
)
def test_t2d_has_one_mark_for_each_target_id(header: TensorHeader) -> None:
    [problem] = found(head(D2T, T2D, t2d_header=header))

    assert f"t2d as BOOL of shape [100], found {header.dtype}" in problem


def test_a_draft_vocabulary_beyond_the_targets_is_refused() -> None:
    [problem] = vocabulary_problems(head(None, None), draft_vocab_size=101, vocab_size=100)

    assert head(None, None).path == problem.value
    assert "at most 100, the target's vocabulary" in problem.expected
    assert "says 101" in problem.expected


def test_of_a_head_without_files_nothing_is_judged() -> None:
    draft = head(None, None).model_copy(update={"tensors": None})

    assert [] == found(draft)


@given(chosen=st.sets(st.integers(0, VOCAB - 1), min_size=1), other=st.integers(0, VOCAB - 1))
def test_every_choice_of_target_ids_is_accepted_and_every_other_mask_refused(
    chosen: set[int], other: int
) -> None:
    ids = sorted(chosen)
    d2t = [target - i for i, target in enumerate(ids)]
    mask = [i in chosen for i in range(VOCAB)]
    flipped = [marked != (i == other) for i, marked in enumerate(mask)]

    assert [] == found(head(d2t, mask), len(ids))
    assert 1 == len(found(head(d2t, flipped), len(ids)))
