"""Checkpoints that are stored quantized, as engine=sglang serves them."""

from itertools import product
from typing import Any

import pytest

from specserve.checkpoint.architecture import Dimensions
from specserve.checkpoint.quantization import (
    draft_problems,
    draft_scheme,
    stored_quantization,
    target_problems,
)
from specserve.config.quantization import (
    AwqQuantization,
    DraftQuantization,
    Fp8Quantization,
    GptqQuantization,
    Nvfp4Quantization,
)

SIZE = Dimensions(
    num_layers=2,
    hidden_size=256,
    intermediate_size=512,
    num_heads=4,
    num_kv_heads=4,
    head_dim=64,
    vocab_size=100,
    max_positions=64,
    tie_word_embeddings=False,
    mla=None,
    moe=None,
)


def _compressed(bits: int, number: str) -> dict[str, Any]:
    weights = {"num_bits": bits, "type": number, "group_size": 16}
    return {"quant_method": "compressed-tensors", "config_groups": {"a": {"weights": weights}}}


SECTIONS: dict[str, dict[str, Any]] = {
    "fp8": {"quant_method": "fp8", "weight_block_size": [128, 128]},
    "fp8 of compressed-tensors": _compressed(8, "float"),
    "fp8 of modelopt": {"quant_method": "modelopt", "quant_algo": "FP8"},
    "awq": {"quant_method": "awq", "bits": 4, "group_size": 128},
    "gptq": {"quant_method": "gptq", "bits": 4, "group_size": 128},
    "gptq in 8 bits": {"quant_method": "gptq", "bits": 8, "group_size": 32},
    "nvfp4 of modelopt": {"quant_method": "modelopt", "quant_algo": "NVFP4", "group_size": 16},
    "nvfp4 of compressed-tensors": _compressed(4, "float"),
    "compressed_tensors_int4": _compressed(4, "int"),
    "int8 of compressed-tensors": _compressed(8, "int"),
    "another": {"quant_method": "quark"},
}
KINDS = {
    "fp8": Fp8Quantization,
    "awq": AwqQuantization,
    "gptq": GptqQuantization,
    "nvfp4": Nvfp4Quantization,
}


@pytest.mark.parametrize("name", sorted(SECTIONS))
def test_a_stored_form_has_the_kind_that_its_name_begins_with(name: str) -> None:
    stored = stored_quantization({"quantization_config": SECTIONS[name]})
    known = name.split()[0] in {*KINDS, "compressed_tensors_int4"}

    assert stored is not None
    assert (name.split()[0] if known else None) == stored.kind


@pytest.mark.parametrize(("kind", "name"), list(product(KINDS, SECTIONS)))
def test_what_is_asked_is_what_is_stored(kind: str, name: str) -> None:
    """A difference is refused, with the setting that describes what is stored, if there is one."""
    asked = KINDS[kind](kind=kind, draft="none")
    stored = stored_quantization({"quantization_config": SECTIONS[name]})
    problems = target_problems(asked, stored, SIZE)

    assert (kind == name.split()[0]) == (not problems)
    for problem in problems:
        assert stored is not None
        wanted = (
            f"set quantization={stored.kind} engine=sglang" if stored.kind else "set model.path"
        )
        assert problem.fix.startswith(wanted)


@pytest.mark.parametrize(("kind", "accepted"), [("fp8", True), ("awq", False), ("nvfp4", False)])
def test_plain_weights_are_quantized_to_fp8_only(kind: str, accepted: bool) -> None:
    assert accepted == (not target_problems(KINDS[kind](kind=kind, draft="none"), None, SIZE))


@pytest.mark.parametrize(
    ("kind", "draft", "scheme"),
    [
        ("fp8", "none", "none"),
        ("fp8", "inherit", "fp8"),
        ("awq", "none", "none"),
        ("awq", "inherit", None),
        ("gptq", "inherit", None),
        ("nvfp4", "fp8", "fp8"),
    ],
)
def test_a_draft_inherits_what_can_be_applied_to_it(
    kind: str, draft: DraftQuantization, scheme: str | None
) -> None:
    """A stored form cannot: the draft's checkpoint has no such weights. (E01)"""
    asked = KINDS[kind](kind=kind, draft=draft)
    problems = draft_problems(asked, None, SIZE)

    assert (scheme is None) == bool(problems)
    if scheme is not None:
        assert scheme == draft_scheme(asked)
