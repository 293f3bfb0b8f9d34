"""B01: Kimi K2.5 from its config alone, and where each figure of a plan comes from."""

from pathlib import Path

import pytest

from specserve.config.load import load_run
from specserve.errors import ConfigError, Problem
from specserve.facts import Facts, Gpu, gather_facts
from specserve.plan import Plan, make_plan
from specserve.testing.checkpoints import write_draft, write_target

KIMI = "+experiment=kimi_k25_int4_topk1_v2"
H100 = Gpu(name="NVIDIA H100 80GB HBM3", memory_bytes=81559 * 2**20, compute_capability="9.0")


def on(facts: Facts, *gpus: Gpu) -> Facts:
    return facts.model_copy(update={"machine": facts.machine.model_copy(update={"gpus": gpus})})


def refused(facts: Facts, *overrides: str) -> Problem:
    with pytest.raises(ConfigError) as caught:
        make_plan(load_run([KIMI, *overrides]).config, facts)
    [problem] = caught.value.problems
    return problem


def plan_of(folder: Path, *overrides: str) -> Plan:
    target = write_target(folder / "t", architecture="llama")
    draft = write_draft(folder / "d", target_folder=target)
    pair = [f"model.path={target}", f"model.draft_path={draft}", "engine.device=cpu"]
    run = load_run(["+experiment=topk1_v2", "model.dtype=float32", *pair, *overrides]).config
    return make_plan(run, gather_facts(run))


def test_kimi_k25_fits_on_eight_gpus_of_96_gb_with_every_row(kimi: Facts) -> None:
    memory = make_plan(load_run([KIMI]).config, kimi).memory

    assert ("NVIDIA H20", 8, 97871 * 2**20) == (
        memory.device,
        memory.num_devices,
        memory.device_bytes,
    )
    assert [
        "target_weights",
        "draft_weights",
        "kv",
        "draft_kv",
        "graphs_plain",
        "graphs_verify",
        "graphs_draft",
        "workspace",
        "runtime",
    ] == [row.what for row in memory.rows]
    assert memory.needed_bytes < 97871 * 2**20
    assert memory.fitting_tokens is not None
    assert 16 * 8192 <= memory.fitting_tokens
    assert 61 * (512 + 64) * 2 == memory.kv_bytes_per_token
    assert 64 // 8 * 2 * 128 * 2 == memory.draft_kv_bytes_per_token


def test_each_gpu_holds_an_eighth_of_what_is_shared_out_and_all_of_the_rest(kimi: Facts) -> None:
    """Compressions of the latent attention, routers and norms are copied, 2 bytes a number."""
    memory = make_plan(load_run([KIMI]).config, kimi).memory
    copied = 61 * 7168 * (1536 + 576) + 60 * 384 * 7168 + 61 * (2 * 7168 + 1536 + 512) + 7168
    shared = 2 * 163840 * 7168
    shared += 61 * (1536 * 64 * 192 + 512 * 64 * 256 + 64 * 128 * 7168)
    shared += 3 * 7168 * 18432 + 60 * 3 * 7168 * 2048
    routed = 60 * 384 * 3 * 7168 * 2048
    eighth = 2 * shared // 8 + routed * (16 + 2) // 32 // 8

    assert 2 * copied + eighth == memory.target_weight_bytes


def test_kimi_k25_is_refused_on_four_gpus_of_80_gb_with_the_numbers(kimi: Facts) -> None:
    """Spread over all four: what each needs, what there is, and how many would do."""
    problem = refused(on(kimi, *[H100] * 4), "parallel.tensor_parallel=4")

    assert "model.path" == problem.key
    assert "NVIDIA H100 80GB HBM3 with 79.65 GiB" in problem.expected
    assert "target 139.87 GiB" in problem.expected
    assert "each device would need 143.70 GiB" in problem.expected
    assert problem.fix.startswith("run on 16 such GPUs, the fewest that hold it, or ")


def test_four_gpus_for_a_run_on_eight_are_not_told_to_spread_over_four(kimi: Facts) -> None:
    problem = refused(on(kimi, *[H100] * 4))

    assert "parallel.tensor_parallel" == problem.key
    assert "found 4; spread over 4, each would need 143.70 GiB and has 79.65" in problem.expected
    assert "set" not in problem.fix


def test_a_larger_share_of_the_device_is_advised_where_it_is_enough(kimi: Facts) -> None:
    facts = on(kimi, *[H100] * 8)

    problem = refused(facts)

    assert problem.fix.startswith("set engine.memory_fraction=0.91, or run on 16 such GPUs")
    mended = make_plan(load_run([KIMI, "engine.memory_fraction=0.91"]).config, facts)
    assert mended.memory.needed_bytes <= 81559 * 2**20


def test_processes_on_a_cpu_share_the_hosts_memory(kimi: Facts) -> None:
    """Eight of them have an eighth of 2 TiB each; nothing is said of GPUs."""
    memory = make_plan(load_run([KIMI, "engine.device=cpu"]).config, on(kimi)).memory

    assert ("host memory", 2**41 // 8) == (memory.device, memory.device_bytes)


def test_without_gpus_nothing_is_said_of_room(kimi: Facts) -> None:
    problem = refused(on(kimi))

    assert "found 0" in problem.expected
    assert "set" not in problem.fix


def test_weights_are_counted_from_headers_and_estimated_without(
    tmp_path: Path, kimi: Facts
) -> None:
    counted = plan_of(tmp_path, "speculation.draft.aux_layer_ids=[0,2,4]").memory
    estimated = make_plan(load_run([KIMI]).config, kimi).memory

    assert ["counted", "counted"] == [row.known for row in counted.rows[:2]]
    assert ["estimated", "estimated"] == [row.known for row in estimated.rows[:2]]


def test_rows_without_bytes_are_left_out(tmp_path: Path) -> None:
    plain = plan_of(tmp_path, "speculation=off", "policy=off").memory

    assert {"target_weights", "kv", "workspace", "runtime", "mapped_files"} >= {
        row.what for row in plain.rows
    }
