"""`specserve explain-policy`, from the command line."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from specserve.cli import main

ROOT = Path(__file__).parent.parent.parent
FACTS = ROOT / "tests/data/facts/h200.json"
LLAMA = ["+experiment=topk1_v2", "model=llama31_8b", "--facts", str(FACTS)]
SHIPPED = sorted(file.stem for file in (ROOT / "conf/experiment").glob("*.yaml"))


def test_words_flags_and_overrides_may_be_mixed(capsys: pytest.CaptureFixture[str]) -> None:
    assert 0 == main(
        ["explain-policy", *LLAMA, "acceptance=0.6", "policy.disable_above=40", "bs=9"]
    )

    assert capsys.readouterr().out.startswith("batch_threshold: while 9 requests decode, drafts 3")


def test_json_holds_what_the_text_says(
    calibration_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = ["--json", "--calibration", str(calibration_file)]
    assert 0 == main(["explain-policy", *LLAMA, *flags, "bs=7"])

    told = json.loads(capsys.readouterr().out)
    assert (7, [0.6, 0.36, 0.2]) == (told["running_decodes"], told["acceptance"])
    assert [3, 0] == [arrival["decision"]["num_steps"] for arrival in told["arrivals"]]
    assert [8, 8] == [step["graph_requests"] for step in told["steps"]]
    assert [0, 1, 3] == [one["num_steps"] for one in told["yields"]]


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        ([], "bs=None: expected the number of running decodes"),
        (["bs=0"], "bs='0'"),
        (["bs=4.5"], "bs='4.5'"),
        (["bs=4", "acceptance=60"], "acceptance='60'"),
        (["bs=4", "acceptance=0.5,0.6,0.1"], "never grow"),
        (["bs=4", "bss=4"], "bss=4: expected"),
        (["bs=4", "--calibration", "nowhere.json"], "--calibration='nowhere.json'"),
        (["bs=4", "--frob"], "see `specserve explain-policy --help`"),
    ],
)
def test_what_is_wrong_ends_with_2(
    argv: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert 2 == main(["explain-policy", *LLAMA, *argv])

    told = capsys.readouterr()
    assert ("", True) == (told.out, words in told.err)


def test_help_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert 0 == main(["explain-policy", "--help"])

    told = capsys.readouterr().out
    assert "specserve explain-policy bs=N [acceptance=P]" in told
    assert max(map(len, told.splitlines())) <= 100


@pytest.mark.parametrize("experiment", SHIPPED)
def test_every_shipped_experiment_is_explained_without_torch_in_a_second_of_work(
    experiment: str,
) -> None:
    """Processor time: the wall clock of a shared machine says little."""
    code = (
        "import sys, time; from specserve.cli import main; code = main(sys.argv[1:]);"
        "heavy = {'torch', 'transformers', 'fastapi', 'structlog', 'matplotlib'};"
        "print(code, sorted(heavy & set(sys.modules)), time.process_time())"
    )
    words = ["explain-policy", "bs=4", "acceptance=0.6", f"+experiment={experiment}"]
    if "kimi" in experiment:  # needs eight GPUs
        words += ["--facts", str(FACTS.with_name("kimi_k25.json"))]
    ran = subprocess.run(
        [sys.executable, "-c", code, *words],
        cwd="/",
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "error"},
        capture_output=True,
        text=True,
        timeout=60,
    )

    result, _, seconds = ran.stdout.splitlines()[-1].rpartition(" ")
    assert "0 []" == result, ran.stderr
    assert float(seconds) < 1.0
