"""The memory plan against what a build really takes, row by row.

    python scripts/check_memory.py                                              a small pair, CPU
    python scripts/check_memory.py --like 8b --json bench/h200/memory.json      8 billion, one GPU

Constructs a pair of that shape, plans it, builds and runs it in a process of its own, and compares.
Ends with 1 if what is allocated, or what the process takes in all, is off by more than 5 %.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from specserve.config.load import load_run
from specserve.config.run import RunConfig
from specserve.facts import Facts, gather_facts
from specserve.plan import MemoryPlan, Plan, make_plan, memory_table
from specserve.plan.graph_memory import torch_graphs
from specserve.plan.reserves import library_bytes

MIB = 2**20
TOLERANCE = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """The shape of a pair, and how it is run."""

    device: str
    dtype: str
    shape: dict[str, int]
    overrides: tuple[str, ...]


SIZES = {
    "small": Size(
        device="cpu",
        dtype="float32",
        shape={
            "vocab_size": 8192,
            "num_layers": 8,
            "hidden_size": 1024,
            "intermediate_size": 2816,
            "num_heads": 16,
            "num_kv_heads": 4,
            "head_dim": 64,
            "context_length": 1024,
        },
        overrides=("scheduler.max_running_requests=4", "engine.num_threads=2"),
    ),
    "8b": Size(
        device="cuda",
        dtype="bfloat16",
        shape={
            "vocab_size": 128256,
            "draft_vocab_size": 32000,
            "num_layers": 32,
            "hidden_size": 4096,
            "intermediate_size": 14336,
            "num_heads": 32,
            "num_kv_heads": 8,
            "head_dim": 128,
            "context_length": 2048,
        },
        overrides=(),
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One comparison, in bytes. `limit` is the share by which the two may differ, if any."""

    what: str
    planned: int
    real: int
    limit: float | None = None

    @property
    def difference(self) -> float:
        """By which share the plan is too large; negative if too small."""
        return self.planned / self.real - 1 if self.real else 0.0

    @property
    def holds(self) -> bool:
        """Whether it is within its limit."""
        return self.limit is None or abs(self.difference) <= self.limit


def main(arguments: Sequence[str] | None = None) -> int:
    """Construct, plan, measure, print."""
    options = _parser().parse_args(arguments)
    if options.measure is not None:
        print(json.dumps(measure(Plan.model_validate_json(options.measure.read_bytes()))))
        return 0
    size = SIZES[options.like]
    with tempfile.TemporaryDirectory(dir=options.folder, ignore_cleanup_errors=True) as folder:
        config = construct(size, Path(folder))
        facts = gather_facts(config)
        plan = make_plan(config, facts)
        real = _measured_apart(plan, Path(folder) / "plan.json")
    rows = list(compare(config, facts, plan, real))
    if options.json:
        options.json.write_text(json.dumps(record(plan, facts, real, rows), indent=2) + "\n")
    print("\n".join(memory_table(plan)) + "\n")
    print("\n".join(lines(rows)))
    return 0 if all(row.holds for row in rows) else 1


def construct(size: Size, folder: Path) -> RunConfig:
    """Write a pair of that shape; the run that serves it."""
    from specserve.testing.constructed import construct_pair

    began = time.perf_counter()
    pair = construct_pair(folder, **size.shape, dtype=size.dtype)  # type: ignore[arg-type]
    print(f"constructed in {time.perf_counter() - began:.1f} s", file=sys.stderr, flush=True)
    return load_run(
        [
            "+experiment=topk1_v2",
            f"model.path={pair.target_folder}",
            f"model.draft_path={pair.draft_folder}",
            f"model.dtype={size.dtype}",
            f"engine.device={size.device}",
            *size.overrides,
        ]
    ).config


def _measured_apart(plan: Plan, path: Path) -> dict[str, Any]:
    """In a process of its own, as a worker has one: this one's memory holds other things too."""
    path.write_text(plan.model_dump_json())
    began = time.perf_counter()
    ran = subprocess.run(
        [sys.executable, __file__, "--measure", str(path)], stdout=subprocess.PIPE, check=True
    )
    print(f"measured in {time.perf_counter() - began:.1f} s", file=sys.stderr, flush=True)
    found: dict[str, Any] = json.loads(ran.stdout.splitlines()[-1])
    return found


def measure(plan: Plan) -> dict[str, Any]:
    """Build, serve as many requests as are admitted, and look at the memory all the while."""
    import torch

    from specserve.torch_engine.build import build
    from specserve.torch_engine.process import make_loop
    from specserve.worker.phases import PhaseRecord, PhaseRunner, host_bytes

    on_gpu = plan.device == "cuda"
    allocated = torch.cuda.memory_allocated if on_gpu else host_bytes
    records: list[PhaseRecord] = []

    def emit(record: PhaseRecord) -> None:
        records.append(record)
        print(f"{record.phase} {record.event} {record.seconds:.1f} s", file=sys.stderr, flush=True)

    runner = PhaseRunner(
        emit=emit, device_bytes=torch.cuda.memory_allocated if on_gpu else lambda: None
    )
    loop = make_loop(build(plan, runner))
    built = allocated()
    if on_gpu:
        torch.cuda.reset_peak_memory_stats()
    run_requests(loop, plan)
    return {
        "phases": [_without_path(asdict(one)) for one in records if one.event != "start"],
        "built_bytes": built,
        "served_bytes": allocated(),
        "peak_bytes": torch.cuda.max_memory_allocated() if on_gpu else None,
        "reserved_bytes": torch.cuda.memory_reserved() if on_gpu else None,
        "used_bytes": _used_bytes() if on_gpu else host_bytes(),
        "torch": str(torch.__version__),
        "device": torch.cuda.get_device_name() if on_gpu else "cpu",
    }


def _without_path(phase: dict[str, Any]) -> dict[str, Any]:
    """The folder was made for the occasion and tells nobody anything."""
    return phase | {"details": {k: v for k, v in phase["details"].items() if k != "path"}}


def _used_bytes() -> int:
    import torch

    free, total = torch.cuda.mem_get_info()
    return total - free


def run_requests(loop: Any, plan: Plan) -> None:  # noqa: ANN401 - torch is not imported here
    """All that are admitted at once, sampled, with prompts of more than a chunk."""
    from specserve.engine import GenerationRequest, Sampling

    sampling = Sampling(temperature=1.0, top_p=1.0, top_k=None, min_p=0.0, seed=0, logit_bias={})
    num_tokens = min(plan.scheduler.prefill_chunk_tokens + 8, plan.target.context_length // 2)
    for index in range(plan.scheduler.max_running_requests):
        loop.submit(
            GenerationRequest(
                request_id=str(index),
                prompt_token_ids=tuple(300 + i % 64 for i in range(num_tokens)),
                max_tokens=16,
                sampling=sampling,
                stop=(),
                stop_token_ids=(),
                top_logprobs=None,
                speculation=True,
                ignore_eos=True,
            )
        )
    while loop.has_work:
        loop.step()
    loop.close()


def compare(config: RunConfig, facts: Facts, plan: Plan, real: dict[str, Any]) -> Iterator[Row]:
    """What the ledger knows row by row, then the sums."""
    memory = plan.memory
    details = {one["phase"]: one["details"] for one in real["phases"]}
    target, draft, kv = (details[name] for name in ("load_target", "load_draft", "kv_cache"))
    planned = memory.target_weight_bytes
    yield Row(what="target weights", planned=planned, real=target["weight_bytes"], limit=0)
    planned = memory.draft_weight_bytes
    yield Row(what="draft weights", planned=planned, real=draft["weight_bytes"], limit=0)
    yield Row(what="KV, target", planned=memory.kv_bytes, real=kv["kv_bytes"], limit=0)
    yield Row(what="KV, draft", planned=memory.draft_kv_bytes, real=kv["draft_kv_bytes"], limit=0)
    if plan.device == "cuda":
        yield from _on_gpu(config, facts, plan, real)
    else:
        everything = memory.needed_bytes + memory.bytes_of("mapped_files")
        yield Row(
            what="resident in all", planned=everything, real=real["used_bytes"], limit=TOLERANCE
        )


def _on_gpu(config: RunConfig, facts: Facts, plan: Plan, real: dict[str, Any]) -> Iterator[Row]:
    memory, phases = plan.memory, {one["phase"]: one for one in real["phases"]}
    graphs = torch_graphs(
        plan.target, plan.speculation, plan.cuda_graph_batch_sizes, plan.scheduler.row_tokens
    )
    num_graphs = sum(one.num_graphs for one in graphs)
    tensors = sum(one.tensor_bytes for one in graphs)
    driver = sum(one.driver_bytes for one in graphs)
    libraries = library_bytes(config, facts.machine, plan.device, num_graphs)
    captured = phases["cuda_graphs"]
    grown = captured["device_bytes_after"] - captured["device_bytes_before"]
    before = library_bytes(config, facts.machine, plan.device, 0)
    yield Row(what="graphs, held by torch", planned=tensors + libraries - before, real=grown)
    yield Row(
        what="features",
        planned=memory.feature_bytes,
        real=real["built_bytes"] - captured["device_bytes_after"],
    )
    yield Row(
        what="allocated, served",
        planned=memory.total_bytes + tensors + libraries,
        real=real["served_bytes"],
        limit=TOLERANCE,
    )
    workspace = memory.bytes_of("workspace") - libraries
    yield Row(
        what="a pass's workspace",
        planned=workspace,
        real=real["peak_bytes"] - real["served_bytes"],
    )
    outside = {
        name: one["details"]["device_used_bytes"] - one["details"]["device_reserved_bytes"]
        for name, one in phases.items()
    }
    yield Row(
        what="runtime",
        planned=memory.bytes_of("runtime"),
        real=outside["attention_backend"],
    )
    yield Row(
        what="graphs, the driver's",
        planned=driver,
        real=outside["cuda_graphs"] - outside["attention_backend"],
    )
    yield Row(
        what="used in all",
        planned=memory.needed_bytes,
        real=real["used_bytes"],
        limit=TOLERANCE,
    )


def lines(rows: Sequence[Row]) -> Iterator[str]:
    """The comparison as a table, and the verdict."""
    yield f"{'':<24}{'planned MiB':>14}{'real MiB':>14}{'difference':>12}  within"
    for row in rows:
        limit = "" if row.limit is None else f"{row.limit:.0%} {'yes' if row.holds else 'NO'}"
        yield (
            f"{row.what:<24}{row.planned / MIB:>14,.1f}{row.real / MIB:>14,.1f}"
            f"{row.difference:>+12.1%}  {limit}"
        )
    yield "holds" if all(row.holds for row in rows) else "DOES NOT HOLD"


def record(plan: Plan, facts: Facts, real: dict[str, Any], rows: Sequence[Row]) -> dict[str, Any]:
    """All of it, to be kept."""
    memory: MemoryPlan = plan.memory
    return {
        "machine": facts.machine.model_dump(),
        "versions": facts.versions,
        "scheduler": plan.scheduler.model_dump(),
        "plan": memory.model_dump(),
        "real": real,
        "rows": [asdict(row) | {"difference": row.difference} for row in rows],
    }


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--like", choices=tuple(SIZES), default="small")
    parser.add_argument("--folder", type=Path, help="where the pair is written meanwhile")
    parser.add_argument("--json", type=Path, help="write everything to this file")
    parser.add_argument("--measure", type=Path, help=argparse.SUPPRESS)
    return parser


if __name__ == "__main__":
    sys.exit(main())
