"""The draft's vocabulary: a subset of the target's, tied to it by d2t and t2d."""

from collections.abc import Sequence

from specserve.checkpoint.header import CheckpointFacts, TensorHeader
from specserve.errors import Problem
from specserve.rule_ids import RuleId

DRAFT_KEY = "speculation.draft.path"
_INTEGERS = ("I64", "I32")


def vocabulary_problems(
    draft: CheckpointFacts, *, draft_vocab_size: int, vocab_size: int
) -> list[Problem]:
    """Whether every draft id has exactly one target id, and d2t and t2d say the same.

    Needs the headers; a head of which only the config is known has no problems here. A missing
    d2t is found by the comparison of tensors.
    """
    if draft_vocab_size > vocab_size:
        return [_size_problem(draft.path, draft_vocab_size, vocab_size)]
    if draft.tensors is None:
        return []
    d2t, t2d = draft.tensors.get("d2t"), draft.tensors.get("t2d")
    problems = [
        *(_kind_problems(draft.path, "d2t", d2t, _INTEGERS, draft_vocab_size) if d2t else ()),
        *(_kind_problems(draft.path, "t2d", t2d, ("BOOL",), vocab_size) if t2d else ()),
    ]
    if problems or draft.d2t is None:
        return problems
    target_ids = [draft_id + offset for draft_id, offset in enumerate(draft.d2t)]
    return _range_problems(draft.path, target_ids, vocab_size) or _mask_problems(
        draft.path, target_ids, draft.t2d
    )


def _size_problem(path: str, draft_vocab_size: int, vocab_size: int) -> Problem:
    return Problem(
        rule=RuleId.HEAD_OF_ANOTHER_TARGET,
        key=DRAFT_KEY,
        value=path,
        expected=f"draft_vocab_size of at most {vocab_size}, the target's vocabulary; the head's "
        f"config.json says {draft_vocab_size}",
        fix=f"set {DRAFT_KEY} to a head that was trained for this target",
    )


def _kind_problems(
    path: str, name: str, tensor: TensorHeader, dtypes: Sequence[str], length: int
) -> list[Problem]:
    if tensor.dtype in dtypes and tensor.shape == (length,):
        return []
    return [
        _map_problem(
            RuleId.VOCABULARY_MAP_FORM,
            path,
            f"{name} as {' or '.join(dtypes)} of shape [{length}], found {tensor.dtype} "
            f"{list(tensor.shape)}",
        )
    ]


def _range_problems(path: str, target_ids: list[int], vocab_size: int) -> list[Problem]:
    outside = [i for i, target_id in enumerate(target_ids) if not 0 <= target_id < vocab_size]
    if outside:
        i = outside[0]
        return [
            _map_problem(
                RuleId.VOCABULARY_MAP_RANGE,
                path,
                f"d2t to hold offsets (target id = draft id + d2t) within 0..{vocab_size - 1}, "
                f"but draft id {i} becomes {target_ids[i]} ({len(outside)} ids are outside)",
            )
        ]
    if len(set(target_ids)) < len(target_ids):
        repeated = len(target_ids) - len(set(target_ids))
        return [
            _map_problem(
                RuleId.VOCABULARY_MAP_RANGE,
                path,
                f"d2t to give each draft id its own target id, but {repeated} are double",
            )
        ]
    return []


def _mask_problems(path: str, target_ids: list[int], t2d: tuple[bool, ...] | None) -> list[Problem]:
    if t2d is None:
        return []
    differing = sorted(set(target_ids) ^ {i for i, marked in enumerate(t2d) if marked})
    if not differing:
        return []
    return [
        _map_problem(
            RuleId.VOCABULARY_MAPS_DISAGREE,
            path,
            f"d2t and t2d to name the same target ids, but they differ in {len(differing)}, "
            f"the first of them {differing[0]}",
        )
    ]


def _map_problem(rule: RuleId, path: str, expected: str) -> Problem:
    return Problem(
        rule=rule,
        key=DRAFT_KEY,
        value=path,
        expected=expected,
        fix="export the head again with the vocabulary map it was trained with, "
        f"or set {DRAFT_KEY} to another head",
    )
