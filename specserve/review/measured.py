"""The last measured figures of a configuration, read from run folders.

The benchmark's results.jsonl has one JSON object a line; its scalar values are shown as they are,
so that this module knows nothing of the benchmark but that.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

RESULTS = "results.jsonl"
_LARGEST_BYTES = 4 << 20
_MOST_FIGURES = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """Figures by name, as text; `source` says where they come from, or that there are none."""

    source: str
    figures: Mapping[str, str] = field(default_factory=dict)


def read_measured(run_folder: Path | None) -> Measured:
    """The last result in `run_folder`; None: no run of this configuration was found."""
    if run_folder is None:
        return Measured(source="no run of it was measured")
    path = run_folder / RESULTS
    try:
        lines = path.read_text(encoding="utf-8").splitlines() if _is_small(path) else []
        last = json.loads(lines[-1]) if lines else None
    except (OSError, ValueError) as error:
        return Measured(source=f"{path.name} cannot be read ({type(error).__name__})")
    if not isinstance(last, dict):
        return Measured(source=f"{run_folder.name} has no {RESULTS} with results")
    scalars = [(str(k), v) for k, v in last.items() if isinstance(v, str | int | float)]
    figures = {name: _figure(value) for name, value in scalars[:_MOST_FIGURES]}
    return Measured(source=f"last line of {run_folder.name}/{RESULTS}", figures=figures)


def _is_small(path: Path) -> bool:
    return path.stat().st_size <= _LARGEST_BYTES


def _figure(value: str | float) -> str:
    return f"{value:,.6g}" if isinstance(value, float) else str(value)
