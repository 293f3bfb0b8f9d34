"""The training script as it is called, at the smallest size."""

import json
import subprocess
import sys
import sysconfig
import tarfile
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_all_stages_leave_a_pair_with_its_figures(tmp_path: Path) -> None:
    library = Path(sysconfig.get_path("stdlib"))
    out, archive = tmp_path / "demo", tmp_path / "demo.tar"

    done = subprocess.run(
        [
            *(sys.executable, "scripts/train_demo.py", "all", "--preset", "smoke"),
            *("--corpus", str(library / "email"), "--out", str(out), "--tar", str(archive)),
            *("--target-minutes", "0.03", "--draft-minutes", "0.03", "--device", "cpu"),
        ],
        cwd=ROOT,
        env={"OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false", "PATH": ""},
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )

    assert 0 == done.returncode, done.stderr
    figures = json.loads((out / "figures.json").read_text())
    assert figures["target"]["largest_logit_difference_to_transformers"] < 1e-4
    assert 1.0 <= figures["draft"]["acceptance_length"] <= 4.0
    assert figures["draft"]["verify_rounds"] > 0
    assert [1, 3, 4] == json.loads((out / "draft" / "config.json").read_text())["eagle_config"][
        "eagle_aux_hidden_state_layer_ids"
    ]
    with tarfile.open(archive) as tar:
        assert {"target/model.safetensors", "draft/model.safetensors", "figures.json"} <= set(
            tar.getnames()
        )
