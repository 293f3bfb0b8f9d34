"""The machine that several runs are planned for; checkpoints are read once each."""

from functools import cache
from pathlib import Path

from specserve.checkpoint.header import CheckpointFacts
from specserve.config.run import RunConfig
from specserve.facts import (
    MEASURED_HERE,
    Facts,
    FindCheckpoint,
    find_checkpoint,
    find_checkpoints,
    installed_versions,
    load_facts,
    measure_machine,
)


class PlanningMachine:
    """This machine, or the one that was recorded in a facts.json."""

    def __init__(self, facts_file: Path | None) -> None:
        """Raises ConfigError if the file holds no facts."""
        recorded = None if facts_file is None else load_facts(facts_file)
        self.source = recorded.source if recorded else MEASURED_HERE
        self._recorded = recorded
        self._machine = recorded.machine if recorded else measure_machine()
        self._versions = recorded.versions if recorded else installed_versions()
        self._find: FindCheckpoint = cache(self._find_checkpoint)

    @property
    def is_here(self) -> bool:
        """Whether it is this machine."""
        return self._recorded is None

    @property
    def num_gpus(self) -> int:
        """GPUs that are visible."""
        return len(self._machine.gpus)

    @property
    def sglang(self) -> str | None:
        """The version of SGLang that is installed there; None if none is."""
        return self._versions.get("sglang")

    def __str__(self) -> str:
        names = sorted({gpu.name for gpu in self._machine.gpus})
        count = len(self._machine.gpus)
        gpus = f"{count} × {', '.join(names)}" if names else "no GPU"
        return f"{self._machine.memory_bytes / 2**30:,.0f} GiB, {gpus} ({self.source})"

    def facts_of(self, config: RunConfig) -> Facts:
        """Raises ConfigError with what is wrong with the checkpoints."""
        target, draft = find_checkpoints(config, self._find)
        return Facts(
            source=self.source,
            machine=self._machine,
            versions=self._versions,
            target=target,
            draft=draft,
        )

    def _find_checkpoint(self, key: str, path: str) -> CheckpointFacts | None:
        """What was recorded of the checkpoint of that name, else what lies here."""
        recorded = self._recorded
        for checkpoint in (recorded.target, recorded.draft) if recorded else ():
            if checkpoint is not None and _is_called(path, checkpoint.path):
                return checkpoint
        return find_checkpoint(key, path)


def _is_called(path: str, recorded: str) -> bool:
    """Whether a configuration's `path` names what was recorded, be it a download of the hub."""
    return path == recorded or f"models--{path.replace('/', '--')}" in recorded.split("/")
