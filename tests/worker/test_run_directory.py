import json
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml

import specserve
from specserve.config.load import load_run
from specserve.config.run import RunConfig
from specserve.config.validate import parse_run
from specserve.errors import ConfigError
from specserve.facts import Facts, Machine
from specserve.plan import Plan
from specserve.worker.run_directory import (
    REDACTED,
    RunDirectory,
    create_run_directory,
    git_commit,
    module_hashes,
    unique_name,
)

Create = Callable[..., RunDirectory]

ENGINE = Path(specserve.__file__).parent / "torch_engine"

# Makes a run directory under the current folder and prints its name.
MANY = """
from datetime import datetime
from pathlib import Path
from specserve.worker.run_directory import unique_name
path = Path("runs") / unique_name(datetime(2026, 1, 1))
path.mkdir(parents=True, exist_ok=False)
"""


@pytest.fixture
def run() -> RunConfig:
    return load_run(["server.api_key=very-secret"], []).config


@pytest.fixture
def create(run: RunConfig, plan: Plan) -> Create:
    facts = Facts(
        source="a test",
        machine=Machine(cpu_count=2, memory_bytes=2**33, gpus=()),
        versions={"torch": "2.13.0"},
        target=None,
        draft=None,
    )

    def directory(asked: Path | None) -> RunDirectory:
        return create_run_directory(
            asked, run=run, overrides=["a=1", "b='x y'"], facts=facts, plan=plan
        )

    return directory


def test_everything_that_the_run_is_made_of_is_in_its_folder(
    create: Create, run: RunConfig, plan: Plan, tmp_path: Path
) -> None:
    folder = create(tmp_path / "run").path

    assert "a=1\nb='x y'\n" == (folder / "overrides.txt").read_text()
    assert plan == Plan.model_validate_json((folder / "plan.json").read_text())
    facts = json.loads((folder / "facts.json").read_text())
    assert "2.13.0" == facts["facts"]["versions"]["torch"]
    assert module_hashes(ENGINE) == facts["modules"]


def test_the_saved_configuration_is_the_same_run_but_for_its_secret(
    create: Create, run: RunConfig, tmp_path: Path
) -> None:
    text = (create(tmp_path / "run").path / "config.yaml").read_text()

    assert "very-secret" not in text
    saved = parse_run(yaml.safe_load(text))
    server = run.server.model_copy(update={"api_key": REDACTED})
    assert run.model_copy(update={"server": server}) == saved


def test_no_file_of_the_folder_holds_the_secret(create: Create, tmp_path: Path) -> None:
    for path in create(tmp_path / "run").path.iterdir():
        assert "very-secret" not in path.read_text()


def test_a_folder_that_exists_is_refused_and_nothing_in_it_touched(
    create: Create, tmp_path: Path
) -> None:
    (tmp_path / "config.yaml").write_text("mine")

    with pytest.raises(ConfigError) as caught:
        create(tmp_path)

    (problem,) = caught.value.problems
    assert ("hydra.run.dir", str(tmp_path)) == (problem.key, problem.value)
    assert ["config.yaml"] == [path.name for path in tmp_path.iterdir()]
    assert "mine" == (tmp_path / "config.yaml").read_text()


@pytest.mark.parametrize("place", ["/proc/run", "/dev/null/run", "x" * 300])
def test_a_folder_that_cannot_be_made_is_named(create: Create, place: str) -> None:
    with pytest.raises(ConfigError, match=r"hydra\.run\.dir='.*a folder that can be written"):
        create(Path(place))


def test_without_a_name_each_run_gets_its_own(
    create: Create, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    first, second = create(None).path, create(None).path

    assert first != second
    assert tmp_path / "runs" == first.parent == second.parent


def test_where_no_run_can_be_written_the_advice_is_not_the_default_again(
    create: Create, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "runs").write_text("a file is in the way")
    monkeypatch.chdir(tmp_path)

    with pytest.raises(ConfigError) as by_default:
        create(None)
    with pytest.raises(ConfigError) as asked:
        create(tmp_path / "runs" / "mine")

    assert "or start where this user may write" in by_default.value.problems[0].fix
    assert "or leave it out for a new one under runs/" in asked.value.problems[0].fix
    assert "(Not a directory)" in asked.value.problems[0].expected


def test_names_sort_by_time() -> None:
    earlier = unique_name(datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC))
    later = unique_name(datetime(2026, 1, 2, 3, 4, 6, tzinfo=UTC))

    assert earlier.startswith("2026-01-02_03-04-05_")
    assert earlier < later


def test_eight_processes_at_once_make_eight_folders(tmp_path: Path) -> None:
    """In the same second, as a sweep starts them (F04)."""
    processes = [subprocess.Popen([sys.executable, "-c", MANY], cwd=tmp_path) for _ in range(8)]

    assert [0] * 8 == [process.wait(60) for process in processes]
    assert 8 == len(list((tmp_path / "runs").iterdir()))


def test_the_ledger_and_the_events_lie_in_the_folder(create: Create, tmp_path: Path) -> None:
    directory = create(tmp_path / "run")
    directory.open_ledger().close()
    directory.open_events().close()

    assert (tmp_path / "run" / "ledger.jsonl").exists()
    assert (tmp_path / "run" / "events.jsonl").exists()


def test_every_module_of_the_engine_has_its_hash() -> None:
    hashes = module_hashes(ENGINE)

    assert str(ENGINE / "loop.py") in hashes
    assert {64} == {len(value) for value in hashes.values()}


def _git(folder: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
    command = ["git", "-C", str(folder), *identity, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def test_the_commit_of_a_checkout_says_whether_it_is_clean(tmp_path: Path) -> None:
    _git(tmp_path, "init", "-q")
    (tmp_path / "file").write_text("1")
    _git(tmp_path, "add", ".")
    _git(tmp_path, "commit", "-qm", "one")
    commit = _git(tmp_path, "rev-parse", "HEAD")

    assert commit == git_commit(tmp_path)

    (tmp_path / "file").write_text("2")
    assert f"{commit}+changes" == git_commit(tmp_path)


def test_a_package_inside_somebody_elses_checkout_has_no_commit(tmp_path: Path) -> None:
    _git(tmp_path, "init", "-q")
    (tmp_path / "site-packages").mkdir()

    assert git_commit(tmp_path / "site-packages") is None
    assert git_commit(Path("/")) is None
