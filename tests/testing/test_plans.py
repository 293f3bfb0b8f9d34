from pathlib import Path

from specserve.testing.checkpoints import EOS_ID, write_draft, write_target
from specserve.testing.plans import draft_plan, target_plan


def test_a_target_plan_holds_the_sizes_of_its_checkpoint(tmp_path: Path) -> None:
    plan = target_plan(
        write_target(tmp_path, architecture="qwen3", num_layers=2, head_dim=32), dtype="bfloat16"
    )

    assert ("qwen3", 2, 64, 2, 32, 320, 512, (EOS_ID,)) == (
        plan.architecture,
        plan.num_layers,
        plan.hidden_size,
        plan.num_kv_heads,
        plan.head_dim,
        plan.vocab_size,
        plan.context_length,
        plan.eos_token_ids,
    )
    assert ("bfloat16", "none") == (plan.dtype, plan.quantization)


def test_a_draft_plan_holds_the_sizes_of_its_checkpoint(tmp_path: Path) -> None:
    target = write_target(tmp_path / "target", architecture="llama", num_layers=1)
    plan = draft_plan(
        write_draft(tmp_path / "draft", target_folder=target, num_kv_heads=4),
        aux_layer_inputs=(1, 2, 3),
    )

    assert (128, 4, 16, (1, 2, 3), ("embed_tokens",)) == (
        plan.draft_vocab_size,
        plan.num_kv_heads,
        plan.head_dim,
        plan.aux_layer_inputs,
        plan.borrowed,
    )
