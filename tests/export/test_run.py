import json
from collections.abc import Sequence
from pathlib import Path

import pytest
import yaml

from specserve.errors import ConfigError, Problem
from specserve.export.run import ENGINES, export_run
from tests.export.engine_models import sglang_steps, tensorrt_llm_steps, vllm_steps

RUN = ["+experiment=topk1_v2", "policy.min_dwell_rounds=0", "policy.resume_at=8"]
ALL = ("hysteresis", "min_dwell_rounds", "while_off")
STEPS = {1: 3, 7: 3, 8: 3, 9: 0, 10: 0, 16: 0, 600: 0}


def _export(to: str, *overrides: str, output: Path | None = None) -> str:
    return export_run([*RUN, *overrides], (), to=to, output=output, drop=ALL)


def _problems(
    overrides: Sequence[str] = RUN,
    to: str | None = "vllm",
    output: Path | None = None,
    drop: Sequence[str] = ALL,
) -> list[Problem]:
    with pytest.raises(ConfigError) as raised:
        export_run(overrides, (), to=to, output=output, drop=drop)
    return list(raised.value.problems)


def test_stdout_is_one_yaml_document_that_means_the_policy() -> None:
    vllm, trt = yaml.safe_load(_export("vllm")), yaml.safe_load(_export("tensorrt-llm"))

    assert STEPS == {n: vllm_steps(vllm, n) for n in STEPS}
    assert STEPS == {n: tensorrt_llm_steps(trt, n) for n in STEPS}


def test_an_attachment_follows_in_comments() -> None:
    text = _export("sglang")
    settings = yaml.safe_load(text)
    name = settings["speculative-adaptive-config"]
    below = text.partition(f"# {name}, a file of its own (--output FILE writes both):\n")[2]
    slots = json.loads("\n".join(line.removeprefix("# ") for line in below.splitlines()))

    assert STEPS == {n: sglang_steps(settings, slots, n) for n in STEPS}


@pytest.mark.parametrize("to", ENGINES)
def test_a_file_says_the_same_as_stdout(to: str, tmp_path: Path) -> None:
    told = _export(to, output=tmp_path / "e.yaml")
    written, shown = yaml.safe_load((tmp_path / "e.yaml").read_text()), yaml.safe_load(_export(to))

    assert f"wrote {tmp_path}/e.yaml\n" in told
    assert f"--config {tmp_path}/e.yaml\n" in told
    assert shown == written | {k: shown[k] for k in ["speculative-adaptive-config"] if k in shown}


def test_the_attachment_is_written_beside_the_file_and_named_in_it(tmp_path: Path) -> None:
    told = _export("sglang", output=tmp_path / "e.yml")
    settings = yaml.safe_load((tmp_path / "e.yml").read_text())
    slots = json.loads(Path(settings["speculative-adaptive-config"]).read_text())

    assert tmp_path / "e.adaptive.json" == Path(settings["speculative-adaptive-config"])
    assert f"wrote {tmp_path}/e.adaptive.json\n" in told
    assert STEPS == {n: sglang_steps(settings, slots, n) for n in STEPS}


@pytest.mark.parametrize(
    ("experiment", "drop"),
    [("topk1_v2", ALL), ("kimi_k25_int4_topk1_v2", (*ALL, "aux_layers"))],
)
@pytest.mark.parametrize("to", ENGINES)
def test_shipped_experiments_with_a_chain_can_be_exported(
    to: str, experiment: str, drop: tuple[str, ...]
) -> None:
    text = export_run([f"+experiment={experiment}"], (), to=to, output=None, drop=drop)

    assert "batch_threshold: 3 steps at 1 to 8; 0 steps at 9 and more" in text


def test_the_fix_of_a_shallow_schedule_can_be_pasted(tmp_path: Path) -> None:
    (tmp_path / "policy").mkdir()
    (tmp_path / "policy/mine.yaml").write_text(
        "kind: depth_schedule\nhysteresis: 0\nmin_dwell_rounds: 0\nwhile_off: skip\n"
        "schedule: [{up_to: 2, num_steps: 1}, {up_to: 8, num_steps: 3}]\n"
    )
    overrides = ["+experiment=topk1_v2", "policy=mine"]
    with pytest.raises(ConfigError) as raised:
        export_run(overrides, [tmp_path], to="tensorrt-llm", output=None, drop=())
    [problem] = raised.value.problems
    fix = problem.fix.removeprefix("set ").strip("'")
    mended = export_run([*overrides, fix], [tmp_path], to="tensorrt-llm", output=None, drop=())

    assert 8 == yaml.safe_load(mended)["speculative_config"]["max_concurrency"]


def test_a_run_that_is_not_valid_is_refused_as_anywhere() -> None:
    assert ["policy.resume_at"] == [p.key for p in _problems([*RUN, "policy.resume_at=9"])]


@pytest.mark.parametrize("to", [None, "vLLM"])
def test_an_unknown_engine_is_refused(to: str | None) -> None:
    [problem] = _problems(to=to)

    assert ("--to", "one of vllm, tensorrt-llm, sglang") == (problem.key, problem.expected)


def test_an_unknown_setting_to_drop_is_refused() -> None:
    """A slip of the pen must not pass for consent, and none is needed for what is not lost."""
    assert [("--drop", "dwell")] == [(p.key, p.value) for p in _problems(drop=[*ALL, "dwell"])]


def test_a_file_that_the_engines_would_not_read_is_refused(tmp_path: Path) -> None:
    [problem] = _problems(output=tmp_path / "e.json")

    assert f"use --output {tmp_path}/e.yaml" == problem.fix
    assert [] == list(tmp_path.iterdir())


def test_a_file_that_cannot_be_written_is_refused_by_name(tmp_path: Path) -> None:
    [problem] = _problems(output=tmp_path / "none/e.yaml")

    assert ("--output", str(tmp_path / "none/e.yaml")) == (problem.key, problem.value)


def test_all_that_cannot_be_expressed_is_told_at_once() -> None:
    overrides = [*RUN, "policy.resume_at=6", "cuda_graph.batch_sizes=[1,6,16]"]

    assert {"policy.resume_at", "policy.while_off", "cuda_graph.batch_sizes"} == {
        p.key for p in _problems(overrides, to="sglang", drop=())
    }
