"""A calibration in the shape of a real one: drafting pays for few requests and not for many."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from specserve.calibration.read import save_calibration
from specserve.calibration.table import Calibration, DepthTimes, Provenance
from specserve.replay.candidates import read_candidates
from specserve.replay.comparison import Comparison, common_costs, compare
from specserve.replay.trace import Row, hold

SIZES = (1, 2, 4, 8, 16, 32, 64, 128)
DEPTHS = (0, 1, 2, 3)


def make_calibration(
    sizes: tuple[int, ...] = SIZES, depths: tuple[int, ...] = DEPTHS, topk: int = 1
) -> Calibration:
    """A pass takes 5 ms and 0.1 ms for each token beyond the 32nd; a draft step takes 0.7 ms."""
    return Calibration(
        format="specserve-calibration-1",
        provenance=Provenance(
            device="a made-up GPU",
            driver=None,
            engine="torch",
            versions={},
            attention="sdpa",
            target="target",
            target_hash="0",
            draft="draft",
            draft_hash="0",
            workload="none",
            date="2026-12-01",
            command="none",
        ),
        topk=topk,
        batch_sizes=sizes,
        depths=tuple(
            DepthTimes(
                num_steps=depth,
                round_seconds=tuple(
                    0.005 + 0.0007 * depth + 0.0001 * max(size * (depth + 1) - 32, 0)
                    for size in sizes
                ),
            )
            for depth in depths
        ),
        verified=1000,
        accepted_by_position=(700, 490, 343)[: max(depths)],
    )


@pytest.fixture
def calibration() -> Calibration:
    return make_calibration()


@pytest.fixture
def calibration_file(tmp_path: Path, calibration: Calibration) -> Path:
    path = tmp_path / "calibration.json"
    save_calibration(calibration, path)
    return path


@pytest.fixture
def config_dir(tmp_path: Path) -> Path:
    """A user's own policies: `mine` names no calibration yet, and `early` gives up early."""
    folder = tmp_path / "conf/policy"
    folder.mkdir(parents=True)
    (folder / "mine.yaml").write_text(
        "kind: cost_model\ncalibration: ???\nmargin: 0.02\nmax_inter_token_ms: null\n"
        "window_rounds: 32\nexplore_every_rounds: 200\n"
        "bounds:\n  schedule: []\n  disable_above: null\nmin_dwell_rounds: 8\nwhile_off: refill\n"
    )
    (folder / "early.yaml").write_text(
        "kind: depth_schedule\nschedule:\n- up_to: 4\n  num_steps: 3\n- up_to: 12\n  num_steps: 1\n"
        "hysteresis: 1\nmin_dwell_rounds: 4\nwhile_off: skip\n"
    )
    return folder.parent


@pytest.fixture
def compared(calibration: Calibration, calibration_file: Path) -> Callable[..., Comparison]:
    """compared(load, *overrides): policies over a load of (seconds, running decodes)."""

    def compare_over(load: Sequence[tuple[float, int]], *overrides: str) -> Comparison:
        candidates = read_candidates(overrides, [], calibration_file, calibration)
        acceptance = calibration.acceptance
        rows = [Row(time=t, running_decodes=n, acceptance=acceptance) for t, n in load]
        return compare(
            hold(rows, "a made-up load"),
            candidates,
            common_costs(calibration, candidates),
            calibration=calibration,
            calibration_path="calibration.json",
            seed=0,
            advanced=lambda _: None,
        )

    return compare_over
