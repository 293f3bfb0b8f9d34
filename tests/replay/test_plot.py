from pathlib import Path

import pytest

from specserve.cli import main
from specserve.replay.plot import plot_problems


@pytest.mark.parametrize(("name", "begins"), [("a.svg", b"<?xml"), ("a.png", b"\x89PNG")])
def test_a_figure_is_drawn_and_is_the_same_every_time(
    calibration_file: Path, tmp_path: Path, name: str, begins: bytes
) -> None:
    argv = ["--calibration", str(calibration_file), "--generate", "bursts", "--seconds", "2"]
    drawn = []
    for _ in range(2):
        path = tmp_path / name
        assert 0 == main(["policy", "replay", *argv, "policy=always,off", "--plot", str(path)])
        drawn.append(path.read_bytes())

    assert drawn[0].startswith(begins)
    assert drawn[0] == drawn[1]


def test_only_formats_that_a_browser_shows() -> None:
    (problem,) = plot_problems(Path("figure.pdf"))

    assert "use --plot figure.svg" == problem.fix


def test_without_the_library_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("specserve.replay.plot.find_spec", lambda _: None)
    (problem,) = plot_problems(Path("figure.svg"))

    assert "pip install 'specserve[plot]'" in problem.fix
