"""The action, the workflow, the GitLab job and the hook: their form, and their steps run here."""

import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from specserve.review.comment import MARKER
from tests.review.conftest import UserRepository, experiment
from tests.review.test_post import Conversation, conversation

__all__ = ["conversation"]

ROOT = Path(__file__).parent.parent.parent
ACTION = yaml.safe_load((ROOT / "action.yml").read_text())
WORKFLOWS = [ROOT / ".github/workflows/review.yml", ROOT / "examples/ci/github.yml"]
GITLAB = yaml.safe_load((ROOT / "examples/ci/gitlab.yml").read_text())
HOOKS = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
REVIEW = (ROOT / "constraints/review.txt").read_text().splitlines()
REQUIRED = [line for line in REVIEW if line and not line.startswith("#")]
_EXPRESSION = re.compile(r"\$\{\{\s*(.+?)\s*\}\}")


def _steps(path: Path) -> list[dict[str, Any]]:
    jobs = yaml.safe_load(path.read_text())["jobs"].values()
    return [step for job in jobs for step in job["steps"]]


def test_every_action_that_is_used_is_pinned_to_a_full_hash_or_is_this_one() -> None:
    used = [s["uses"] for w in WORKFLOWS for s in _steps(w)]
    used += [step["uses"] for step in ACTION["runs"]["steps"] if "uses" in step]

    assert used
    assert [] == [
        one
        for one in used
        if not re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40}", one)
        and one not in ("./", "OWNER/specserve@RELEASE_HASH")  # the user's own choice
    ]


def test_a_composite_step_names_its_shell_and_gets_its_inputs_as_variables_only() -> None:
    """An expression inside a script would let a branch name become a command."""
    scripts = [step for step in ACTION["runs"]["steps"] if "run" in step]

    assert {"bash"} == {step["shell"] for step in scripts}
    assert [] == [step["name"] for step in scripts if _EXPRESSION.search(step["run"])]


def test_every_input_is_described_and_read_and_none_is_read_that_is_not_there() -> None:
    text = (ROOT / "action.yml").read_text()
    read = set(re.findall(r"inputs\.([\w-]+)", text))

    assert set(ACTION["inputs"]) == read
    assert all(value["description"] for value in ACTION["inputs"].values())
    passed = {name for w in WORKFLOWS for s in _steps(w) for name in s.get("with", {})}
    assert passed <= read | {"fetch-depth", "persist-credentials"}


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_may_write_one_comment_and_nothing_else(path: Path) -> None:
    workflow = yaml.safe_load(path.read_text())

    assert {"contents": "read", "pull-requests": "write"} == workflow["permissions"]
    assert ["pull_request"] == list(workflow[True])  # `on` is a boolean in YAML 1.1
    assert [False] == [
        s["with"]["persist-credentials"] for s in _steps(path) if "checkout" in s["uses"]
    ]


def test_a_review_needs_no_more_than_its_list_says() -> None:
    """It runs while specserve's other dependencies cannot be imported."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    others = [re.split(r"[<>=]", line)[0] for line in set(project) - set(REQUIRED)]
    code = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in sys.argv[1:]:
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Absent())
from specserve.cli import main
sys.exit(main(["diff", "baseline", "topk1_v2"]))
"""
    ran = _python(code, *(name.replace("-", "_") for name in others))

    assert set(REQUIRED) <= set(project)
    assert "torch" in others
    assert 0 == ran.returncode, ran.stderr


def test_the_gitlab_job_installs_what_a_review_needs() -> None:
    [line] = [one for one in GITLAB["specserve"]["before_script"] if "hydra-core" in one]

    assert REQUIRED == shlex.split(line)[3:]


def test_the_hook_is_a_command_that_works() -> None:
    [hook] = HOOKS
    program, *arguments = shlex.split(hook["entry"])
    ran = _python("import sys; from specserve.cli import main; sys.exit(main())", *arguments)

    assert ("specserve-check", "specserve", 0) == (hook["id"], program, ran.returncode), ran.stderr


def _python(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=100,
    )


class Runner:
    """Runs scripts as a CI machine would, with this Python in the place of the installed one."""

    def __init__(self, place: Path) -> None:
        self.place = place
        programs = place / "specserve/bin"
        programs.mkdir(parents=True)
        for name, words in (("python", ""), ("specserve", "-m specserve")):
            (programs / name).write_text(
                f'#!/bin/sh\nPYTHONPATH="{ROOT}" exec "{sys.executable}" {words} "$@"\n'
            )
            (programs / name).chmod(0o755)
        self.environment = {
            **{k: v for k, v in os.environ.items() if not k.startswith(("CI_", "GITHUB_"))},
            "PATH": f"{programs}:{os.environ['PATH']}",
            "RUNNER_TEMP": str(place),
            "GITHUB_STEP_SUMMARY": str(place / "summary"),
            "GITHUB_OUTPUT": str(place / "output"),
        }

    def run(self, script: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """In the working directory."""
        return subprocess.run(
            ["bash", "-c", script],
            env={**self.environment, **variables},
            capture_output=True,
            text=True,
            timeout=100,
        )

    @property
    def outputs(self) -> dict[str, str]:
        """What the step before wrote."""
        lines = (self.place / "output").read_text().splitlines()
        return dict(line.split("=", 1) for line in lines)


@pytest.fixture
def runner(tmp_path: Path) -> Runner:
    return Runner(tmp_path / "runner")


def _script(name: str) -> str:
    [step] = [step for step in ACTION["runs"]["steps"] if step["name"] == name]
    return str(step["run"])


def _review(runner: Runner, **variables: str) -> subprocess.CompletedProcess[str]:
    given = {
        "BASE": "main",
        "CONFIG_DIR": "serving",
        "FACTS": "",
        "OVERRIDES": "",
        "FAIL_ON": "broken",
    }
    return runner.run(_script("Review"), **{**given, **variables})


def test_the_steps_of_the_action_review_comment_and_judge(
    repository: UserRepository, runner: Runner, conversation: Conversation
) -> None:
    repository.git("switch", "--quiet", "--create", "topic")
    repository.write("few.yaml", experiment(4).replace("resume_at: 2", "resume_at: 9"))
    repository.commit()

    reviewed = _review(runner)
    assert (0, "2") == (reviewed.returncode, runner.outputs["code"]), reviewed.stderr
    assert "newly broken" in (runner.place / "summary").read_text()
    for _ in range(2):
        done = runner.run(
            _script("Comment"), **conversation.github, REVIEW=runner.outputs["review"]
        )
        assert (0, "") == (done.returncode, done.stdout), done.stderr
    assert [MARKER] == [c["body"].splitlines()[0] for c in conversation.comments]
    assert 2 == runner.run(_script("Verdict"), CODE=runner.outputs["code"]).returncode


def test_without_a_token_that_may_write_the_action_warns_and_goes_on(
    repository: UserRepository, runner: Runner, conversation: Conversation
) -> None:
    _review(runner)
    variables = {**conversation.github, "GITHUB_API_URL": "http://127.0.0.1:9"}
    done = runner.run(_script("Comment"), **variables, REVIEW=runner.outputs["review"])

    assert (0, True) == (done.returncode, done.stdout.startswith("::warning"))


def test_inputs_with_spaces_and_dollar_signs_stay_inputs(
    repository: UserRepository, runner: Runner, tmp_path: Path
) -> None:
    (repository.top / "my own").mkdir()
    (repository.top / "serving").rename(repository.top / "my own/serving")
    canary = tmp_path / "canary"
    reviewed = _review(
        runner,
        CONFIG_DIR="my own/serving\n",
        OVERRIDES=f"model.name='$(touch {canary})'\nscheduler.max_running_requests=8\n",
        FAIL_ON="never",
    )

    assert 0 == reviewed.returncode, reviewed.stderr
    assert not canary.exists()
    assert MARKER in (runner.place / "summary").read_text()


def test_a_base_that_is_not_here_is_fetched(
    repository: UserRepository, runner: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A shallow checkout has the head only."""
    base = repository.git("rev-parse", "HEAD").strip()
    repository.git("switch", "--quiet", "--create", "topic")
    repository.write("few.yaml", experiment(6))
    repository.commit()
    repository.git("config", "uploadpack.allowAnySHA1InWant", "true")
    clone = tmp_path / "clone"
    source = f"file://{repository.top}"
    subprocess.run(
        ["git", "clone", "--quiet", "--depth=1", "--branch=topic", source, str(clone)], check=True
    )
    monkeypatch.chdir(clone)

    reviewed = _review(runner, BASE=base)
    assert 0 == reviewed.returncode, reviewed.stderr
    assert "Of 2 experiments, 1 changes." in (runner.place / "summary").read_text()


def test_a_wrong_flag_ends_the_action_with_its_message(
    repository: UserRepository, runner: Runner
) -> None:
    reviewed = _review(runner, FAIL_ON="sometimes")

    assert (2, True) == (reviewed.returncode, "invalid choice: 'sometimes'" in reviewed.stderr)


def test_the_gitlab_job_reviews_comments_and_judges(
    repository: UserRepository, runner: Runner, conversation: Conversation
) -> None:
    """GitLab runs the lines of a script as one, and stops at the first that fails."""
    repository.git("switch", "--quiet", "--create", "topic")
    repository.write("few.yaml", experiment(4) + "server: {host: 0.0.0.0}\n")
    repository.commit()
    script = "set -eo pipefail\n" + "\n".join(GITLAB["specserve"]["script"])

    ran = runner.run(script, **conversation.gitlab, CI_MERGE_REQUEST_DIFF_BASE_SHA="main")
    assert 2 == ran.returncode, ran.stderr
    [note] = conversation.comments
    assert note["body"] == (repository.top / "specserve-review.md").read_text()
