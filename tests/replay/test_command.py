"""The whole command, in-process and as a process of its own."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from specserve.cli import main

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture
def trace_file(tmp_path: Path) -> Path:
    path = tmp_path / "load.csv"
    rows = ["0,2", "2,30", "4,90", "6,0", "7,8", "9,0"]
    path.write_text("\n".join(["time,running_decodes", *rows]))
    return path


def test_the_verdict_comes_first_then_the_table_and_the_course(
    calibration_file: Path, trace_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    argv = ["policy", "replay", "--calibration", str(calibration_file), "--trace", str(trace_file)]
    assert 0 == main([*argv, "policy=off,batch_threshold,always", "policy.disable_above=16"])

    lines = capsys.readouterr().out.splitlines()
    assert "batch_threshold, the best of 3 policies, gets" in lines[0]
    assert "more than the best setting that never changes" in lines[1]
    names = [line.split()[0] for line in lines if "%" in line[:60]]
    assert {"off", "always", "oracle"} <= set(names)
    (lane,) = [line for line in lines if line.startswith("  oracle  ") and "·" in line]
    assert {" ", "·", "3"} <= set(lane.split(maxsplit=1)[1])
    assert any("3 -> 0  30 running decodes are more than disable_above=16" in x for x in lines)


def test_everything_is_written_as_json_and_the_same_every_time(
    calibration_file: Path, trace_file: Path, config_dir: Path, tmp_path: Path
) -> None:
    texts = []
    for name in ("one.json", "two.json"):
        argv = ["--calibration", str(calibration_file), "--trace", str(trace_file)]
        flags = ["--json", str(tmp_path / name), "--config-dir", str(config_dir)]
        assert 0 == main(["policy", "replay", *argv, *flags, "policy=mine,early"])
        texts.append((tmp_path / name).read_text())

    told = json.loads(texts[0])
    assert texts[0] == texts[1]
    assert "specserve-replay-1" == told["format"]
    assert ["mine", "early"] == [policy["name"] for policy in told["policies"]]
    assert [0, 1, 2, 3] == [setting["num_steps"] for setting in told["statics"]]
    for one in (*told["policies"], *told["statics"], told["oracle"]):
        assert one["switches"] == len(one["stays"]) - 1
        assert pytest.approx(one["tokens"]) == sum(s["tokens"] for s in one["by_depth"])
        assert pytest.approx(one["tokens_per_second"]) == one["tokens"] / one["seconds"]


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ([], "--trace=None"),
        (["--generate", "ramp", "--json", "/nowhere/at/all.json"], "--json='/nowhere/at/all.json'"),
        (["--generate", "ramp", "--plot", "figure.pdf"], "--plot='figure.pdf'"),
        (["--generate", "ramp", "policy=alwys"], "policy='alwys'"),
        (["--generate", "ramp", "--frob"], "specserve policy replay --help"),
    ],
)
def test_what_is_wrong_ends_with_2(
    calibration_file: Path, flags: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert 2 == main(["policy", "replay", "--calibration", str(calibration_file), *flags])

    told = capsys.readouterr()
    assert ("", True) == (told.out, words in told.err)


def test_a_folder_in_place_of_a_file_is_refused(
    calibration_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    argv = ["--calibration", str(calibration_file), "--generate", "ramp", "--seconds", "1"]
    assert 2 == main(["policy", "replay", *argv, "--json", str(tmp_path)])

    assert "Is a directory" in capsys.readouterr().err


def test_it_needs_neither_torch_nor_a_plotting_library(calibration_file: Path) -> None:
    code = (
        "import sys; from specserve.cli import main; code = main(sys.argv[1:]);"
        "heavy = {'torch', 'transformers', 'numpy', 'matplotlib', 'fastapi', 'structlog'};"
        "print(code, sorted(heavy & set(sys.modules)))"
    )
    flags = ["--calibration", str(calibration_file), "--generate", "bursts", "--seconds", "3"]
    ran = subprocess.run(
        [sys.executable, "-c", code, "policy", "replay", *flags, "policy=off,always"],
        cwd="/",
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "error"},
        capture_output=True,
        text=True,
        timeout=60,
    )

    assert ("0 []", "") == (ran.stdout.splitlines()[-1], ran.stderr)


def test_help_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert 0 == main(["policy", "replay", "--help"])

    assert "specserve policy replay --calibration FILE" in capsys.readouterr().out
