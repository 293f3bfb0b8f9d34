from pathlib import Path

import pytest

from specserve.calibration.read import save_calibration
from specserve.calibration.table import Calibration, DepthTimes, Provenance


@pytest.fixture
def calibration_file(tmp_path: Path) -> Path:
    """1 step pays up to 16 running decodes, 3 steps up to 4."""
    path = tmp_path / "calibration.json"
    calibration = Calibration(
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
        topk=1,
        batch_sizes=(4, 16, 32),
        depths=(
            DepthTimes(num_steps=0, round_seconds=(0.010, 0.010, 0.010)),
            DepthTimes(num_steps=1, round_seconds=(0.012, 0.014, 0.020)),
            DepthTimes(num_steps=3, round_seconds=(0.014, 0.026, 0.040)),
        ),
        verified=100,
        accepted_by_position=(60, 36, 20),
    )
    save_calibration(calibration, path)
    return path
