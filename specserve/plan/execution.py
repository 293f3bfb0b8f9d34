"""Where and with what a run computes: device, threads, attention back-end, GPUs."""

from typing import Literal, assert_never

from specserve.config.engine import SglangEngineConfig, TorchEngineConfig
from specserve.config.run import RunConfig
from specserve.errors import Doubt, Problem
from specserve.facts import Facts, Machine
from specserve.plan.notes import Notes
from specserve.rule_ids import RuleId

Device = Literal["cpu", "cuda"]
Attention = Literal["sdpa", "fa3", "triton", "flashinfer", "intel_amx"]


def choose_device(config: RunConfig, facts: Facts, notes: Notes) -> Device:
    """`auto` takes a GPU if there is one and the installed torch can use it."""
    match config.engine:
        case SglangEngineConfig(device=device):
            return device
        case TorchEngineConfig(device="auto"):
            device, reason = _auto_device(facts)
            notes.adjust("engine.device", "auto", device, reason)
            return device
        case TorchEngineConfig(device=device):
            if device == "cuda" and not _can_use_cuda(facts):
                notes.refuse([_no_cuda(facts)])
            return "cuda" if device == "cuda" else "cpu"
        case _:
            assert_never(config.engine)


def choose_num_threads(config: RunConfig, machine: Machine, notes: Notes) -> int:
    """`auto` leaves one core to the supervisor and its HTTP.

    The threads of one step wait for each other: where one has to share its core, all of them stop
    (measured on two cores with the demo pair: steps of 17 to 40 ms instead of 4).
    """
    asked = config.engine.num_threads if isinstance(config.engine, TorchEngineConfig) else "auto"
    if asked != "auto":
        if asked > machine.cpu_count:
            notes.warn(
                Doubt(
                    rule=RuleId.THREADS_ABOVE_CORES,
                    key="engine.num_threads",
                    text=f"engine.num_threads={asked} on {machine.cpu_count} cores: threads that "
                    "wait for each other make every step slower",
                )
            )
        return asked
    cores = machine.cpu_count
    num_threads = max(1, cores - 1)
    if isinstance(config.engine, TorchEngineConfig):
        reason = f"of {cores} cores one is left to the supervisor and its HTTP"
        notes.adjust("engine.num_threads", "auto", num_threads, reason)
    return num_threads


def choose_attention(config: RunConfig, machine: Machine, notes: Notes) -> Attention:
    """`auto` takes what the engine has: sdpa for torch; for SGLang by the GPU's generation."""
    asked = config.attention.kind
    if asked != "auto":
        notes.refuse(_kernel_problems(config, machine))
        return asked
    attention, reason = _auto_attention(config, machine)
    notes.adjust("attention.kind", "auto", attention, reason)
    return attention


def gpus_per_node(config: RunConfig) -> int:
    """GPUs that this machine must have for its share of the tensor parallelism."""
    return -(-config.parallel.tensor_parallel // config.parallel.num_nodes)


def _auto_device(facts: Facts) -> tuple[Device, str]:
    if not facts.machine.gpus:
        return "cpu", "no GPU is visible to this process"
    if not _can_use_cuda(facts):
        return "cpu", f"torch {facts.versions.get('torch')} is built without CUDA"
    return "cuda", f"{facts.machine.gpus[0].name} is visible to this process"


def _can_use_cuda(facts: Facts) -> bool:
    return bool(facts.machine.gpus) and not facts.versions.get("torch", "").endswith("+cpu")


def _no_cuda(facts: Facts) -> Problem:
    found = f"torch {facts.versions.get('torch')}, built without CUDA"
    return Problem(
        rule=RuleId.NO_USABLE_GPU,
        key="engine.device",
        value="cuda",
        expected="a GPU that torch can use, found "
        + (found if facts.machine.gpus else "no GPU that is visible to this process"),
        fix="set engine.device=cpu",
    )


def gpu_count_problems(config: RunConfig, machine: Machine) -> list[Problem]:
    """What can be said of too few GPUs where no checkpoint tells how much each has to hold."""
    if not isinstance(config.engine, SglangEngineConfig) or config.engine.device == "cpu":
        return []
    needed, visible = gpus_per_node(config), len(machine.gpus)
    if visible >= needed:
        return []
    fix = "run on such a machine, or check against its recorded facts with --facts FILE"
    if visible and config.parallel.num_nodes == 1:
        fix = f"set parallel.tensor_parallel={_power_of_two_below(visible)}, or {fix}"
    return [
        Problem(
            rule=RuleId.TOO_FEW_GPUS,
            key="parallel.tensor_parallel",
            value=config.parallel.tensor_parallel,
            expected=f"{needed} visible GPUs on this machine for engine=sglang, found {visible}",
            fix=fix,
        )
    ]


def _kernel_problems(config: RunConfig, machine: Machine) -> list[Problem]:
    """FlashAttention 3 is compiled for Ampere, Ada and Hopper; Blackwell's GPUs have no kernel."""
    without = [gpu for gpu in machine.gpus if not gpu.compute_capability.startswith(("8.", "9."))]
    if config.attention.kind != "fa3" or not without:
        return []
    return [
        Problem(
            rule=RuleId.ATTENTION_WITHOUT_KERNEL,
            key="attention",
            value="fa3",
            expected=f"a back-end that {without[0].name} has: its compute capability is "
            f"{without[0].compute_capability}, and fa3 is made for 8.x and 9.x",
            fix="choose attention=flashinfer, or attention=triton",
        )
    ]


def _auto_attention(config: RunConfig, machine: Machine) -> tuple[Attention, str]:
    match config.engine:
        case TorchEngineConfig():
            return "sdpa", "it is what engine=torch has"
        case SglangEngineConfig(device="cpu"):
            return "intel_amx", "it is what SGLang computes speculative decoding with on a CPU"
        case SglangEngineConfig():
            capability = machine.gpus[0].compute_capability if machine.gpus else "unknown"
            if capability.startswith("9."):
                return "fa3", f"the GPU's compute capability is {capability} (Hopper)"
            return "flashinfer", f"the GPU's compute capability is {capability}; fa3 needs 9.x"
        case _:
            assert_never(config.engine)


def _power_of_two_below(count: int) -> int:
    """The largest power of two that is not above `count`, at least 1."""
    return 1 << (count.bit_length() - 1)
