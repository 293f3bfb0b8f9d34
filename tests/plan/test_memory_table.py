from specserve.config.load import load_run
from specserve.facts import Facts
from specserve.plan import MemoryPlan, make_plan, memory_table
from specserve.plan.memory_table import memory_lines


def test_the_table_of_kimi_k25(kimi: Facts) -> None:
    plan = make_plan(load_run(["+experiment=kimi_k25_int4_topk1_v2"]).config, kimi)

    title, *rows = memory_table(plan)

    assert "memory of each of 8 x NVIDIA H20, 97,871.0 MiB" == title
    assert rows[0].startswith("target weights         72,653.3 MiB  estimated  the dimensions")
    assert rows[-3].startswith("needed")
    assert rows[-2].startswith("left")
    assert (
        "KV per token 74,368 B (70,272 B target + 4,096 B draft); 206,742 tokens fit beside the "
        "weights" == rows[-1]
    )


def test_the_sum_is_that_of_the_rows(kimi: Facts) -> None:
    plan = make_plan(load_run(["+experiment=kimi_k25_int4_topk1_v2"]).config, kimi)
    sizes = [
        float(line[20:35].replace(",", "").removesuffix("MiB")) for line in memory_table(plan)[1:-1]
    ]

    assert abs(sum(sizes[:-2]) - sizes[-2]) < 0.1 * len(sizes)
    assert abs(97871 - sizes[-2] - sizes[-1]) < 0.2


def test_a_device_that_is_not_known_has_nothing_left_to_tell() -> None:
    lines = list(memory_lines(MemoryPlan.counted({"kv": 2**20})))

    assert ["memory of any", "KV, target", "needed"] == [line[:20].strip() for line in lines]
