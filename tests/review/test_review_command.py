"""`specserve review` on a real repository: what is said, and what it does with bad input."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from specserve.cli import main
from specserve.errors import ConfigError
from specserve.review import review_change
from specserve.review.comment import MARKER
from tests.review.conftest import UserRepository, experiment

ROOT = Path(__file__).parent.parent.parent
Review = Callable[..., str]
FLAGS = ["--base", "main", "--config-dir", "serving"]


def _verdict(text: str) -> str:
    return text.splitlines()[3].strip("*")


def test_the_verdict_stands_first_below_the_mark_of_the_comment(
    repository: UserRepository, review: Review
) -> None:
    repository.write("few.yaml", experiment(6))

    lines = review().splitlines()
    assert MARKER == lines[0]
    assert "**Of 2 experiments, 1 changes.**" == lines[3]


def test_an_effect_is_shown_by_load_not_by_line(repository: UserRepository, review: Review) -> None:
    repository.write("few.yaml", experiment(6))

    text = review()
    assert "| `policy.disable_above` | `4` | `6` |" in text
    assert "| `5 to 6` | `plain` | `3 steps; plain coming from more` | `changed` |" in text
    assert "before, rising   3333············" in text
    assert "after, rising    333333··········" in text


def test_nothing_changed_is_one_sentence(repository: UserRepository, review: Review) -> None:
    text = review()

    assert "None of 2 experiments changes." == _verdict(text)
    assert "<details>" not in text


def test_the_same_change_gives_the_same_comment(repository: UserRepository, review: Review) -> None:
    repository.write("few.yaml", experiment(6))
    repository.write("new.yaml", experiment(3))

    assert review() == review()


def test_what_is_newly_broken_comes_first(repository: UserRepository, review: Review) -> None:
    repository.write("few.yaml", experiment(6))
    repository.write("more.yaml", experiment(8).replace("resume_at: 2", "resume_at: 9"))

    text = review()
    assert "Of 2 experiments, 1 is newly broken, 1 changes." == _verdict(text)
    assert text.index("more: newly broken") < text.index("few: changed")
    assert "[SPEC403]" in text


def test_a_mended_experiment_is_said_to_be(repository: UserRepository, review: Review) -> None:
    repository.write("few.yaml", experiment(4).replace("resume_at: 2", "resume_at: 9"))
    repository.commit()
    repository.git("switch", "--quiet", "--create", "topic")
    repository.write("few.yaml", experiment(4))

    assert "Of 2 experiments, 1 is no longer broken." == _verdict(review())


@pytest.mark.parametrize(
    ("addition", "rule"),
    [
        ("policy: {disable_above: 16, resume_at: 2}\n", "SPEC450"),
        ("server: {host: 0.0.0.0}\n", "SPEC351"),
        ("model: {trust_remote_code: true}\n", "SPEC353"),
        ("server: {api_key: hunter2}\n", "SPEC354"),
    ],
    ids=["threshold above the admission limit", "all interfaces", "remote code", "secret"],
)
def test_a_danger_is_marked(
    addition: str, rule: str, repository: UserRepository, review: Review
) -> None:
    text = experiment(4)
    if addition.startswith("policy"):
        text = text.partition("policy:\n")[0]
    repository.write("few.yaml", text + addition)

    told = review()
    assert "Of 2 experiments, 1 changes with a danger." == _verdict(told)
    assert "⚠️ danger |" in told
    assert rule in told


def test_graphs_that_no_longer_cover_a_mode_are_a_danger(
    repository: UserRepository, review: Review
) -> None:
    text = experiment(4).replace("\npolicy:", "\n  - override /engine: sglang\npolicy:")
    repository.write("few.yaml", text)
    repository.commit()
    repository.git("switch", "--quiet", "--create", "topic")
    repository.write("few.yaml", text + "cuda_graph: {batch_sizes: [1, 2]}\n")

    told = review("--facts", str(ROOT / "tests/data/facts/h200.json"))
    assert "SPEC752" in told


def test_added_and_removed_experiments_are_named(
    repository: UserRepository, review: Review
) -> None:
    (repository.experiments / "few.yaml").unlink()
    repository.write("fresh.yaml", experiment(3))

    text = review()
    assert "Of 3 experiments, 1 is new, 1 is removed." == _verdict(text)
    assert "| `fresh` | added |" in text


def test_the_head_may_be_a_revision(repository: UserRepository, review: Review) -> None:
    repository.git("switch", "--quiet", "--create", "topic")
    repository.write("few.yaml", experiment(6))
    repository.commit()
    repository.write("more.yaml", experiment(7))

    assert "Of 2 experiments, 1 changes." == _verdict(review("--head", "topic"))
    assert "Of 2 experiments, 2 change." == _verdict(review())


def test_what_came_to_the_base_later_is_not_shown_as_taken_back(
    repository: UserRepository, review: Review
) -> None:
    """As in a pull request: compared with where the head branched off."""
    repository.git("switch", "--quiet", "--create", "topic")
    repository.write("few.yaml", experiment(6))
    repository.commit()
    repository.git("switch", "--quiet", "main")
    repository.write("more.yaml", experiment(7))
    repository.commit()
    repository.git("switch", "--quiet", "topic")

    text = review()
    assert "Of 2 experiments, 1 changes." == _verdict(text)
    assert "main, branched off at" in text


def test_no_checkout_is_touched(repository: UserRepository, review: Review) -> None:
    repository.write("few.yaml", experiment(6))
    before = repository.git("status", "--porcelain=v2", "--branch")
    index = (repository.top / ".git/index").read_bytes()

    review()
    assert before == repository.git("status", "--porcelain=v2", "--branch")
    assert index == (repository.top / ".git/index").read_bytes()


# Bad input


def test_a_revision_that_does_not_exist_is_refused_by_name(
    repository: UserRepository, capsys: pytest.CaptureFixture[str]
) -> None:
    assert 2 == main(["review", "--base", "nowhere", "--config-dir", "serving"])

    told = capsys.readouterr()
    assert ("", True) == (told.out, "--base='nowhere'" in told.err)


@pytest.mark.parametrize("revision", ["--output=x", "main:serving", "HEAD~99", "main^{tree}"])
def test_what_is_no_commit_is_no_revision(revision: str, repository: UserRepository) -> None:
    with pytest.raises(ConfigError, match="a revision that is in this repository"):
        review_change([f"--base={revision}", "--config-dir", "serving"])


def test_a_side_that_does_not_compose_is_shown_and_the_rest_reviewed(
    repository: UserRepository, review: Review
) -> None:
    repository.write("few.yaml", "# @package _global_\ndefaults:\n  - override /policy: nowhere\n")
    repository.write("more.yaml", experiment(6))

    text = review()
    assert "Of 2 experiments, 1 is newly broken, 1 changes." == _verdict(text)
    assert "[SPEC105]" in text
    assert "more: changed" in text


@pytest.mark.parametrize(
    "contents",
    [
        "5\n",
        "[1, 2]\n",
        "",
        "# @package _global_\ndefaults: [few]\n",
        "# @package _global_\nmodel: {name: !!binary aGk=}\n",
        "# @package _global_\nmodel: {name: '${model.name}'}\n",
        "# @package _global_\nmodel: {name: !!python/object/apply:os.getcwd []}\n",
        "# @package _global_\nhydra: {searchpath: ['file:///etc']}\n",
        "# @package _global_\ndefaults: ['/../../../../outside']\n",
        "# @package _global_\npolicy: []\n",
    ],
)
def test_no_text_ends_the_review(contents: str, repository: UserRepository, review: Review) -> None:
    repository.write("few.yaml", contents)

    assert "Of 2 experiments, 1 is newly broken." == _verdict(review())


def test_a_dirty_tree_is_said_to_be(repository: UserRepository, review: Review) -> None:
    assert "uncommitted" not in review()

    repository.write("few.yaml", experiment(6))
    assert "with uncommitted changes" in review()


@pytest.mark.parametrize(
    ("contents", "words"),
    [
        (b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR", "text in UTF-8"),
        (b"# @package _global_\nmodel:\n  name: caf\xe9\n", "few.yaml:3"),
        (b"a: \x00\n", "control characters"),
        (b"model: {name: [\n", "YAML that can be read"),
        (b"# " + b"x" * (5 << 20), "at most 262,144 bytes"),
        (
            b"a: &a [1,1,1,1,1,1,1,1,1]\n"
            + b"".join(
                b"%c: &%c [%s]\n" % (c + 1, c + 1, b",".join([b"*%c" % c] * 9))
                for c in range(ord("a"), ord("j"))
            ),
            "values, aliases written out",
        ),
        (b"model: &m {name: *m}\n", "values that end"),
        (b"a: " + b"[" * 60 + b"]" * 60, "levels of nesting"),
    ],
    ids=["binary", "latin-1", "NUL", "cut off", "5 MB", "aliases", "endless", "deep"],
)
def test_a_file_that_must_not_be_read_breaks_only_what_needs_it(
    contents: bytes, words: str, repository: UserRepository, review: Review
) -> None:
    repository.write("few.yaml", contents)
    repository.write("more.yaml", experiment(6))

    text = review()
    assert "Of 2 experiments, 1 is newly broken, 1 changes." == _verdict(text)
    assert words in text
    assert "serving/experiment/few.yaml" in text


@pytest.mark.parametrize("target", ["/etc/hostname", "../../../elsewhere.yaml", "few.yaml/.."])
def test_a_symlink_out_of_the_tree_is_not_followed(
    target: str, tmp_path: Path, repository: UserRepository, review: Review
) -> None:
    (tmp_path / "elsewhere.yaml").write_text("# @package _global_\nmodel: {name: secret}\n")
    (repository.experiments / "linked.yaml").symlink_to(target)

    text = review()
    assert "a symlink to a YAML file of the configuration" in text
    assert "secret" not in text
    repository.commit()
    assert "a symlink to a YAML file of the configuration" in review(
        "--head", "HEAD", "--base", "HEAD"
    )


def test_a_symlink_inside_the_tree_is_followed(repository: UserRepository, review: Review) -> None:
    (repository.experiments / "linked.yaml").symlink_to("few.yaml")

    assert "Of 3 experiments, 1 is new." == _verdict(review())


def test_two_experiments_of_one_name_are_said_to_be(
    repository: UserRepository, review: Review
) -> None:
    repository.write("/other/experiment/few.yaml", experiment(5))

    text = review("--config-dir", "other")
    assert "experiment few lies in two search paths" in text
    assert "other/experiment/few.yaml never is" in text


def test_an_experiment_of_the_name_of_a_shipped_one_is_said_never_to_count(
    repository: UserRepository, review: Review
) -> None:
    repository.write("topk1_v2.yaml", experiment(5))

    assert "serving/experiment/topk1_v2.yaml never is" in review()


def test_the_environment_is_not_read(
    repository: UserRepository, review: Review, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pull request must not make its reviewer print a secret."""
    monkeypatch.setenv("GITHUB_TOKEN", "hunter2")
    repository.write("few.yaml", experiment(4) + "model: {name: '${oc.env:GITHUB_TOKEN}'}\n")

    text = review()
    assert "hunter2" not in text
    assert '`"$GITHUB_TOKEN"`' in text


def test_a_secret_of_the_environment_is_none_in_a_file(
    repository: UserRepository, review: Review
) -> None:
    repository.write("few.yaml", experiment(4) + "server: {api_key: '${oc.env:NAME}'}\n")

    assert "SPEC354" not in review()


def test_a_secret_is_not_shown(repository: UserRepository, review: Review) -> None:
    repository.write("few.yaml", experiment(4) + "server: {api_key: hunter2}\n")

    text = review()
    assert "hunter2" not in text
    assert '| `server.api_key` | `null` | `"(hidden)"` |' in text


def test_names_cannot_write_markdown(repository: UserRepository, review: Review) -> None:
    name = "x|`</details>@everyone <!-- specserve-review -->"
    repository.write("few.yaml", experiment(4) + f"model: {{name: {json.dumps(name)}}}\n")

    text = review()
    assert r'``"x\|`</details>@everyone <!-- specserve-review -->"``' in text
    assert 1 == text.count("\n</details>\n")


@pytest.mark.parametrize(
    ("fail_on", "host", "resume_at", "code"),
    [
        (None, "0.0.0.0", 9, 0),
        ("broken", "0.0.0.0", 2, 0),
        ("broken", "127.0.0.1", 9, 2),
        ("danger", "0.0.0.0", 2, 2),
        ("danger", "127.0.0.1", 9, 2),
        ("danger", "127.0.0.1", 2, 0),
    ],
)
def test_the_exit_code_is_0_unless_it_is_asked_to_fail(
    fail_on: str | None,
    host: str,
    resume_at: int,
    code: int,
    repository: UserRepository,
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = experiment(4).replace("resume_at: 2", f"resume_at: {resume_at}")
    repository.write("few.yaml", f"{text}server: {{host: {host}}}\n")
    flags = [] if fail_on is None else ["--fail-on", fail_on]

    assert code == main(["review", *FLAGS, *flags])
    assert capsys.readouterr().out.startswith(MARKER)


def test_without_a_base_or_a_folder_of_configs_it_says_what_is_missing(
    repository: UserRepository,
) -> None:
    with pytest.raises(ConfigError, match="--base=None"):
        review_change([])
    with pytest.raises(ConfigError, match="a folder of your own configs inside the repository"):
        review_change(["--base", "main"])


@pytest.mark.parametrize("folder", ["servign", "../nowhere"])
def test_a_folder_that_is_nowhere_is_refused(folder: str, repository: UserRepository) -> None:
    with pytest.raises(ConfigError, match="a folder that exists"):
        review_change(["--base", "main", "--config-dir", "serving", "--config-dir", folder])


def test_a_folder_may_be_new(repository: UserRepository, review: Review) -> None:
    repository.write("/second/experiment/third.yaml", experiment(5))

    assert "Of 3 experiments, 1 is new." == _verdict(review("--config-dir", "second"))


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="this is no checkout of specserve")
def test_specserves_own_checkout_reviews_its_own_configurations(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(ROOT)
    text = review_change(["--base", "HEAD", "--head", "HEAD"]).text

    assert "change" in _verdict(text) or "cannot work on either side" in _verdict(text)
    assert "| changed |" not in text


def test_outside_of_a_repository_it_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))

    with pytest.raises(ConfigError, match="not a git repository"):
        review_change(["--base", "main"])


def test_ten_experiments_take_less_than_four_seconds_of_work_and_no_torch(
    repository: UserRepository,
) -> None:
    """Processor time, git's included: the wall clock of a shared machine says little."""
    for number in range(8):
        repository.write(f"e{number}.yaml", experiment(4 + number))
    repository.commit()
    repository.git("switch", "--quiet", "--create", "topic")
    for number in range(8):
        repository.write(f"e{number}.yaml", experiment(5 + number))
    repository.write("few.yaml", experiment(5))
    repository.write("more.yaml", experiment(9))
    code = (
        "import resource, sys; from specserve.cli import main; code = main(sys.argv[1:]);"
        "whose = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN);"
        "used = map(resource.getrusage, whose);"
        "seconds = sum(one.ru_utime + one.ru_stime for one in used);"
        "print(code, seconds, 'torch' in sys.modules, 'sglang' in sys.modules)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code, "review", *FLAGS],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=100,
    )
    exit_code, seconds, *heavy = ran.stdout.splitlines()[-1].split()

    assert "Of 10 experiments, 10 change." == _verdict(ran.stdout), ran.stderr
    assert ("0", ["False", "False"]) == (exit_code, heavy)
    assert float(seconds) < 4
