"""Every rule is raised by a case, and what its message says to do mends the run."""

import json
import socket
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from specserve.check.catalogue import find_catalogue
from specserve.checkpoint.header import read_checkpoint
from specserve.config.load import load_run
from specserve.config.policy import AlwaysPolicy
from specserve.config.server import ServerConfig
from specserve.errors import ConfigError, Doubt, Problem
from specserve.plan import make_plan
from specserve.replay.plot import plot_problems
from specserve.replay.read import read_trace
from specserve.rule_ids import RuleId
from specserve.rulebook import RULEBOOK
from specserve.serve.listener import bind
from specserve.serve.prepare import prepare
from specserve.server.policy_change import parse_change
from specserve.torch_engine.built import Built, refuse_unbuilt
from specserve.worker.run_directory import create_run_directory
from tests.fixes import apply_fixes, is_mechanical
from tests.rulebook.pairs import DRAFT, TARGET, facts
from tests.rulebook.scenes import CALIBRATION, SCENES, Scene, told

Told = Sequence[Problem | Doubt]


def _problems(call: Callable[[], object]) -> Told:
    with pytest.raises(ConfigError) as refused:
        call()
    return refused.value.problems


def _experiment(text: str | bytes) -> Callable[[Path], Told]:
    """What is said of an experiment file of the user's own."""

    def case(folder: Path) -> Told:
        file = folder / "experiment/mine.yaml"
        file.parent.mkdir()
        file.write_bytes(text.encode() if isinstance(text, str) else text)
        return _problems(lambda: load_run(["+experiment=mine"], [folder]))

    return case


def _doubts_of_files(name: str) -> Callable[[Path], Told]:
    def case(folder: Path) -> Told:
        (folder / name).parent.mkdir()
        (folder / name).write_text("kind: always\n")
        return [doubt for _, doubt in find_catalogue([folder]).doubts]

    return case


def _folder(**files: str) -> Callable[[Path], Told]:
    """What is said of a checkpoint folder with these files; a header is written as JSON."""

    def case(folder: Path) -> Told:
        for name, text in files.items():
            (folder / name.replace("__", ".")).write_bytes(text.encode())
        return _problems(lambda: read_checkpoint(folder))

    return case


def _index_that_disagrees(folder: Path) -> Told:
    header = b"{}"
    (folder / "config.json").write_text("{}")
    (folder / "a.safetensors").write_bytes(len(header).to_bytes(8, "little") + header)
    index = {"weight_map": {"model.norm.weight": "a.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    return _problems(lambda: read_checkpoint(folder))


def _depths_that_were_not_measured(folder: Path) -> Told:
    table = json.loads(CALIBRATION.read_text())
    table["depths"] = [one for one in table["depths"] if one["num_steps"] in (0, 3)]
    (folder / "table.json").write_text(json.dumps(table))
    policy = ["policy=cost_model", f"policy.calibration={folder / 'table.json'}"]
    return told([*policy, "speculation.num_steps=2"], facts())


def _directory_that_exists(folder: Path) -> Told:
    run = load_run(["+experiment=topk1_v2", f"model.path={TARGET}", f"model.draft_path={DRAFT}"])
    known = facts()
    plan = make_plan(run.config, known)
    return _problems(
        lambda: create_run_directory(folder, run=run.config, overrides=[], facts=known, plan=plan)
    )


def _port_taken(_: Path) -> Told:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        server = _server(port=taken.getsockname()[1])
        return _problems(lambda: bind(server))


def _server(**changed: object) -> ServerConfig:
    return load_run([]).config.server.model_copy(update=changed)


def _trace_without_a_column(folder: Path) -> Told:
    (folder / "load.csv").write_text("time\n0\n1\n")
    return _problems(lambda: read_trace(folder / "load.csv", 1, [0.5]))


def _no_draft_was_built(_: Path) -> Told:
    built = Built(speculation=None, calibration=None, calibration_path=None)
    return _problems(lambda: refuse_unbuilt(AlwaysPolicy(kind="always"), built))


CASES: dict[RuleId, Callable[[Path], Told]] = {
    RuleId.RUN_DIRECTORY: _directory_that_exists,
    RuleId.UNKNOWN_FILE: _experiment("# @package _global_\ndefaults:\n  - nothing/like_it\n"),
    RuleId.BAD_YAML: _experiment("# @package _global_\npolicy: [off\n"),
    RuleId.NOT_UTF8: _experiment(b"# @package _global_\nmodel:\n  name: \xe9\n"),
    RuleId.BOOLEAN_OPTION: _experiment(
        "# @package _global_\ndefaults:\n  - override /policy: off\n"
    ),
    RuleId.UNKNOWN_GROUP: _experiment(
        '# @package _global_\ndefaults:\n  - override /polcy: "off"\n'
    ),
    RuleId.NO_PACKAGE_HEADER: _experiment("speculation:\n  num_steps: 2\n"),
    RuleId.SHADOWED_FILE: _doubts_of_files("policy/always.yaml"),
    RuleId.FOLDER_OF_NO_GROUP: _doubts_of_files("policies/always.yaml"),
    RuleId.CALIBRATION_LACKS_DEPTHS: _depths_that_were_not_measured,
    RuleId.POLICY_NOT_BUILT_FOR: _no_draft_was_built,
    RuleId.POLICY_CHANGE: lambda _: _problems(lambda: parse_change({"pin": "maybe"})),
    RuleId.CHECKPOINT_NOT_HERE: lambda _: _problems(
        lambda: make_plan(load_run(["model.path=nobody/nothing"]).config, facts(target=None))
    ),
    RuleId.NO_WEIGHTS: _folder(config__json="{}"),
    RuleId.PICKLED_WEIGHTS: _folder(config__json="{}", pytorch_model__bin=""),
    RuleId.SHARD_MISSING: _folder(
        config__json="{}", model__safetensors__index__json='{"weight_map": {"a": "b.safetensors"}}'
    ),
    RuleId.INDEX_DISAGREES: _index_that_disagrees,
    RuleId.BROKEN_FILE: _folder(config__json="{}", model__safetensors="version https://git-lfs"),
    RuleId.PORT_TAKEN: _port_taken,
    RuleId.WRONG_HOST: lambda _: _problems(lambda: bind(_server(host="203.0.113.1"))),
    RuleId.BAD_TRACE: _trace_without_a_column,
    RuleId.NO_PLOT: lambda folder: plot_problems(folder / "load.svg"),
    RuleId.ENGINE_NOT_STARTED: lambda _: _problems(
        lambda: prepare(load_run(["engine=sglang"]).config, overrides=[], run_directory=None)
    ),
}
# Raised by what takes more than a file or a call: the test that does it.
RAISED_BY: dict[RuleId, str] = {RuleId.SECRET_IN_A_FILE: "tests/review/test_review_command.py"}
SHOWN = {rule.id for rule in RULEBOOK.values() if rule.example.startswith("specserve ")}
DOUBTS = {rule.id for rule in RULEBOOK.values() if rule.severity != "error"}


def test_every_rule_is_raised_by_a_case() -> None:
    """By its own example (test_rulebook.py), a scene, a case here, or a test that is named."""
    assert set(RuleId) == SHOWN | set(SCENES) | set(CASES) | set(RAISED_BY)


@pytest.mark.parametrize("rule", CASES, ids=str)
def test_a_file_or_a_call_raises_its_rule(
    rule: RuleId, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)  # as where it is not installed
    assert rule in {one.rule for one in CASES[rule](tmp_path)}


@pytest.mark.parametrize("rule", SCENES, ids=str)
def test_a_scene_raises_its_rule(rule: RuleId) -> None:
    assert rule in {one.rule for one in told(SCENES[rule].overrides, SCENES[rule].facts)}


# What a message can only say in words: another file is needed, or another machine.
IN_WORDS = {
    RuleId.IMPOSSIBLE_DIMENSION,
    RuleId.UNSUPPORTED_ARCHITECTURE,
    RuleId.NO_TOKENIZER,
    RuleId.TOKENIZER_OF_ANOTHER_MODEL,
    RuleId.TARGET_TENSORS,
    RuleId.HEAD_OF_ANOTHER_TARGET,
    RuleId.DRAFT_TENSORS,
    RuleId.VOCABULARY_MAP_FORM,
    RuleId.VOCABULARY_MAP_RANGE,
    RuleId.VOCABULARY_MAPS_DISAGREE,
    RuleId.DRAFT_STORED_QUANTIZED,
    RuleId.QUANTIZED_TWICE,
    RuleId.DRAFT_OF_ANOTHER_VOCABULARY,
}


@pytest.mark.parametrize("rule", [r for r in SCENES if r not in DOUBTS], ids=str)
def test_what_a_problem_says_to_do_mends_the_run(rule: RuleId) -> None:
    scene: Scene = SCENES[rule]
    problems = [p for p in told(scene.overrides, scene.facts) if isinstance(p, Problem)]
    mending = [problem for problem in problems if is_mechanical(problem)]

    assert (rule in IN_WORDS) == (not mending)
    if mending:
        after = told(apply_fixes(scene.overrides, mending), scene.facts)

        assert [] == [str(one) for one in after if isinstance(one, Problem)]


def test_no_case_needs_what_is_not_imported_by_a_check() -> None:
    assert "sglang" not in sys.modules
