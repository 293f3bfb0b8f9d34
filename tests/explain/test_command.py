"""`specserve explain`, from the command line."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from specserve.cli import main

ROOT = Path(__file__).parent.parent.parent
KIMI = [
    "+experiment=kimi_k25_int4_topk1_v2",
    "--facts",
    str(ROOT / "tests/data/facts/kimi_k25.json"),
]
SHIPPED = sorted(file.stem for file in (ROOT / "conf/experiment").glob("*.yaml"))


def _at(file: str, written: str) -> str:
    """`conf/…:LINE` of the line that begins so."""
    lines = (ROOT / file).read_text().splitlines()
    [number] = [n for n, line in enumerate(lines, 1) if line.strip().startswith(written)]
    return f"{file}:{number}"


def _text(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert 0 == main(["explain", *words])
    return capsys.readouterr().out


def _json(capsys: pytest.CaptureFixture[str], *words: str) -> Any:  # noqa: ANN401 (JSON)
    return json.loads(_text(capsys, "--json", *words))


def test_a_key_is_told_with_its_file_line_and_chain(capsys: pytest.CaptureFixture[str]) -> None:
    text = _text(capsys, "policy.disable_above", "+experiment=topk1_v2", "policy.disable_above=16")

    assert [
        "policy = batch_threshold",
        f"  chosen by   {_at('conf/experiment/topk1_v2.yaml', '- override /policy')} "
        "(policy: batch_threshold)",
        f"  instead of  {_at('conf/config.yaml', '- policy')} (policy: off)",
        "policy.disable_above: 16",
        "  set by      the command line: policy.disable_above=16",
        f"  overrode    {_at('conf/policy/batch_threshold.yaml', 'disable_above')} (8)",
        "  becomes     phase attributes: policy",
    ] == text.splitlines()


def test_what_was_left_open_is_told_with_the_decision_and_its_reason(
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = _text(capsys, "scheduler.max_kv_tokens")

    assert "scheduler.max_kv_tokens: auto" in text
    assert "  decided     16384 (max_running_requests x context_length 1024)" in text


def test_a_reference_is_followed(capsys: pytest.CaptureFixture[str]) -> None:
    text = _text(capsys, "speculation.draft.path", "+experiment=topk1_v2")

    where = _at("conf/speculation/eagle3_topk1.yaml", "path")
    home = _at("conf/model/demo.yaml", "draft_path")
    assert f"  set by      {where} (${{model.draft_path}})" in text
    assert f"  refers to   model.draft_path: {home} (bundled:demo/draft)" in text


def test_the_engines_argument_is_told_with_its_value(capsys: pytest.CaptureFixture[str]) -> None:
    told = {one["key"]: one["becomes"] for one in _json(capsys, *KIMI)["keys"]}

    assert ["--speculative-num-steps 3"] == told["speculation.num_steps"]
    assert ["--tp-size 8"] == told["parallel.tensor_parallel"]
    assert ["--trust-remote-code"] == told["model.trust_remote_code"]
    assert told["policy.kind"][1].startswith("--speculative-adaptive-config sglang_adaptive.json {")
    assert told["policy.while_off"][0].startswith("SGLANG_SPEC_SKIP_ZERO_STEP_DRAFT_EXTEND=")
    assert [] == [key for key, becomes in told.items() if not becomes]


def test_without_a_plan_arguments_have_their_names_only(
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = _text(capsys, "parallel.tensor_parallel", "+experiment=kimi_k25_int4_topk1_v2")

    assert text.startswith("no plan could be made, so that what is left open is not decided:\n")
    assert "  becomes     --tp-size\n" in text


def test_a_refused_run_is_explained_too(capsys: pytest.CaptureFixture[str]) -> None:
    """Where a wrong value comes from is just what one wants to know then."""
    text = _text(capsys, "policy.resume_at", "+experiment=topk1_v2", "policy.resume_at=9")

    assert text.startswith("this run is refused")
    assert "[SPEC403]" in text
    assert "the command line: policy.resume_at=9" in text


def test_a_section_and_a_key_of_it_are_told_once(capsys: pytest.CaptureFixture[str]) -> None:
    keys = [one["key"] for one in _json(capsys, "parallel", "parallel.num_nodes")["keys"]]

    assert ["parallel.tensor_parallel", "parallel.num_nodes"] == keys


def test_a_secret_is_hidden_wherever_it_was_set(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KEY", "hunter2")
    for typed in ("server.api_key=hunter2", "server.api_key=${oc.env:KEY}"):
        for flags in ([], ["--json"]):
            assert "hunter2" not in _text(capsys, "server", typed, *flags)
    assert "${oc.env:KEY}" in _text(capsys, "server.api_key", "server.api_key=${oc.env:KEY}")


def test_a_users_folder_is_searched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine/experiment").mkdir(parents=True)
    (tmp_path / "mine/experiment/own.yaml").write_text("# @package _global_\nserver:\n  port: 7\n")
    monkeypatch.chdir(tmp_path)

    text = _text(capsys, "server.port", "+experiment=own", "--config-dir", "mine")
    assert "  set by      mine/experiment/own.yaml:3\n" in text


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (
            ["policy.disabl_above", "policy=batch_threshold"],
            "specserve explain policy.disable_above",
        ),
        (["policy.disable_above"], "policy.kind=off has none such"),
        (["server.port=1", "server.port=x=y"], "server.port"),
        (["policy=nowhere"], "SPEC105"),
        (["--facts", "nowhere.json"], "nowhere.json"),
        (["--frob"], "see `specserve explain --help`"),
    ],
)
def test_what_is_wrong_ends_with_2(
    argv: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert 2 == main(["explain", *argv])

    told = capsys.readouterr()
    assert ("", True) == (told.out, words in told.err), told.err


@pytest.mark.parametrize("command", ["explain", "diff", "review"])
def test_help_is_printed(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert 0 == main([command, "--help"])

    told = capsys.readouterr().out
    assert f"specserve {command}" in told
    assert max(map(len, told.splitlines())) <= 100


@pytest.mark.parametrize("experiment", SHIPPED)
def test_every_shipped_experiment_is_explained_without_torch_in_a_second_of_work(
    experiment: str,
) -> None:
    code = (
        "import sys, time; from specserve.cli import main; code = main(sys.argv[1:]);"
        "heavy = {'torch', 'transformers', 'fastapi', 'structlog', 'sglang'};"
        "print(code, sorted(heavy & set(sys.modules)), time.process_time())"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code, "explain", f"+experiment={experiment}"],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    *answer, seconds = ran.stdout.splitlines()[-1].split()

    assert ["0", "[]"] == answer, ran.stderr
    assert float(seconds) < 1.5
