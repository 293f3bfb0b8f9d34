"""What is measured, once, before planning. `Facts` is a value: CI plans from a recorded one."""

import json
import os
from collections.abc import Callable
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import psutil
from pydantic import ValidationError

from specserve.checkpoint.header import CheckpointFacts, read_checkpoint
from specserve.config.paths import BUNDLED, is_hub_id, resolve_path
from specserve.config.run import RunConfig
from specserve.config.speculation import draft_path
from specserve.config.strict import StrictModel
from specserve.errors import ConfigError, Problem
from specserve.rule_ids import RuleId

_DISTRIBUTIONS = (
    "specserve",
    "torch",
    "transformers",
    "tokenizers",
    "safetensors",
    "torchao",
    "sglang",
    "hydra-core",
    "omegaconf",
    "pydantic",
)
MEASURED_HERE = "measured on this machine"

FindCheckpoint = Callable[[str, str], CheckpointFacts | None]

_CGROUP_LIMIT = Path("/sys/fs/cgroup/memory.max")


class Gpu(StrictModel):
    """One visible GPU."""

    name: str
    memory_bytes: int
    compute_capability: str


class Machine(StrictModel):
    """The machine that the run is planned for."""

    cpu_count: int
    memory_bytes: int
    gpus: tuple[Gpu, ...]


class Facts(StrictModel):
    """Machine, versions (of distributions, by name) and both checkpoints.

    A checkpoint that is not on this machine is None: rules that need it are then not applied,
    and whoever serves must refuse. `source` says in words where the facts come from.
    """

    source: str
    machine: Machine
    versions: dict[str, str]
    target: CheckpointFacts | None
    draft: CheckpointFacts | None


def gather_facts(config: RunConfig) -> Facts:
    """Look at this machine and at the checkpoints that `config` names. Imports no torch.

    A hub id that has not been downloaded gives None. Raises ConfigError with the problems of both
    checkpoints: a folder that is not there, a file that is missing, truncated or malformed.
    """
    target, draft = find_checkpoints(config)
    return Facts(
        source=MEASURED_HERE,
        machine=measure_machine(),
        versions=installed_versions(),
        target=target,
        draft=draft,
    )


def find_checkpoints(
    config: RunConfig, find: FindCheckpoint | None = None
) -> tuple[CheckpointFacts | None, CheckpointFacts | None]:
    """Target and draft of `config`, each None if it is not on this machine.

    Raises ConfigError with the problems of both. Who looks at many runs passes a `find` that
    remembers what it has read.
    """
    wanted = [("model.path", config.model.path)]
    draft = draft_path(config.speculation)
    if draft is not None:
        wanted.append(("speculation.draft.path", draft))
    found: dict[str, CheckpointFacts | None] = {}
    problems: list[Problem] = []
    for key, path in wanted:
        try:
            found[key] = (find or find_checkpoint)(key, path)
        except ConfigError as error:
            problems += error.problems
    if problems:
        raise ConfigError(problems)
    return found["model.path"], found.get("speculation.draft.path")


def load_facts(path: Path) -> Facts:
    """The facts in a file of `save_facts`, or in the facts.json of a run directory.

    There they stand below "facts", beside what else the run recorded. Raises ConfigError if `path`
    holds none.
    """
    try:
        tree = json.loads(path.read_bytes())
        recorded = tree["facts"] if isinstance(tree, dict) and "facts" in tree else tree
        # As JSON once more: read strictly, a list is a tuple there and nowhere else.
        return Facts.model_validate_json(json.dumps(recorded))
    except OSError as error:
        raise _facts_problem(path, f"found none ({error.strerror})") from error
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise _facts_problem(path, f"but the file is no JSON ({error})") from error
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"])) or "the file"
        raise _facts_problem(path, f"but {place}: {first['msg']}") from error


def save_facts(facts: Facts, path: Path) -> None:
    """Write `facts` as JSON. Raises OSError."""
    path.write_text(facts.model_dump_json(indent=2) + "\n", encoding="utf-8")


def measure_machine() -> Machine:
    """Cores and memory that this process may use, and the GPUs that it sees."""
    return Machine(
        cpu_count=_cpu_count(),
        memory_bytes=memory_limit(psutil.virtual_memory().total, _CGROUP_LIMIT),
        gpus=tuple(visible_gpus(_gpus(), os.environ.get("CUDA_VISIBLE_DEVICES"))),
    )


def installed_versions() -> dict[str, str]:
    """Versions of the distributions that matter, as far as they are installed."""
    versions = {}
    for name in _DISTRIBUTIONS:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            continue
    return versions


def visible_gpus(gpus: list[tuple[str, Gpu]], setting: str | None) -> list[Gpu]:
    """The GPUs that CUDA_VISIBLE_DEVICES leaves, in its order; all if it is unset.

    `gpus` are (uuid, GPU) in driver order. As CUDA does, the list ends at the first entry that
    names no GPU.
    """
    if setting is None:
        return [gpu for _, gpu in gpus]
    visible = []
    for entry in setting.split(","):
        gpu = _named_gpu(gpus, entry.strip())
        if gpu is None:
            break
        visible.append(gpu)
    return visible


def _named_gpu(gpus: list[tuple[str, Gpu]], entry: str) -> Gpu | None:
    if entry.isdecimal():
        return gpus[int(entry)][1] if int(entry) < len(gpus) else None
    matches = [gpu for uuid, gpu in gpus if entry and uuid.startswith(entry)]
    return matches[0] if len(matches) == 1 else None


def _gpus() -> list[tuple[str, Gpu]]:
    """(uuid, GPU) in driver order; empty without an NVIDIA driver."""
    import pynvml  # type: ignore[import-untyped]  # here: only who measures needs it

    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return []
    try:
        handles = map(pynvml.nvmlDeviceGetHandleByIndex, range(pynvml.nvmlDeviceGetCount()))
        return [
            (
                pynvml.nvmlDeviceGetUUID(handle),
                Gpu(
                    name=pynvml.nvmlDeviceGetName(handle),
                    memory_bytes=pynvml.nvmlDeviceGetMemoryInfo(handle).total,
                    compute_capability="{}.{}".format(
                        *pynvml.nvmlDeviceGetCudaComputeCapability(handle)
                    ),
                ),
            )
            for handle in handles
        ]
    finally:
        pynvml.nvmlShutdown()


def find_checkpoint(key: str, path: str) -> CheckpointFacts | None:
    """What lies at `path`, which the configuration's `key` names; None for a hub id not here.

    Raises ConfigError.
    """
    if path.startswith(BUNDLED) and not resolve_path(path).is_dir():
        raise ConfigError([_not_bundled(key, path)])
    folder = _hub_snapshot(path) if is_hub_id(path) else resolve_path(path)
    if folder is None:
        return None
    try:
        return read_checkpoint(folder, key=key)
    except ConfigError as error:
        raise ConfigError([_as_typed(path, folder, one) for one in error.problems]) from error


def _as_typed(path: str, folder: Path, problem: Problem) -> Problem:
    """The problem of `folder` with what the configuration calls it, and where it was looked for."""
    place = "" if path == str(folder) else f" in {folder}"
    return replace(problem, value=path, expected=problem.expected + place)


def _not_bundled(key: str, path: str) -> Problem:
    return Problem(
        rule=RuleId.BUNDLE_NOT_HERE,
        key=key,
        value=path,
        expected=f"a checkpoint that ships with specserve, found none at {resolve_path(path)}",
        fix=f"install specserve again, or set {key} to the folder of a checkpoint",
    )


def _hub_snapshot(hub_id: str) -> Path | None:
    """The folder into which the hub's own client downloaded `hub_id`; None if it did not."""
    home = Path(os.environ.get("HF_HOME", "~/.cache/huggingface")).expanduser()
    cache = Path(os.environ.get("HF_HUB_CACHE", home / "hub"))
    repository = cache / f"models--{hub_id.replace('/', '--')}"
    reference = repository / "refs" / "main"
    if not reference.is_file():
        return None
    snapshot = repository / "snapshots" / reference.read_text(encoding="utf-8").strip()
    return snapshot if snapshot.is_dir() else None


def _cpu_count() -> int:
    """Cores that this process may run on, where the platform tells; else all."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def memory_limit(total: int, cgroup_limit: Path) -> int:
    """A container sees the host's memory but may use its own share only."""
    if not cgroup_limit.is_file():
        return total
    limit = cgroup_limit.read_text(encoding="ascii").strip()
    return min(total, int(limit)) if limit.isdecimal() else total


def _facts_problem(path: Path, found: str) -> ConfigError:
    inside = path / "facts.json"
    fix = "give the facts.json of a run on that machine"
    return ConfigError(
        [
            Problem(
                rule=RuleId.NO_FACTS,
                key="--facts",
                value=str(path),
                expected=f"a file with recorded facts, {found}",
                fix=f"give --facts {inside}" if inside.is_file() else fix,
            )
        ]
    )
