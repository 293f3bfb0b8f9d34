from pathlib import Path

import pytest

from specserve.check.catalogue import Catalogue, Option, find_catalogue
from specserve.check.place import Place, place_of
from specserve.config.compose import config_directory
from tests.check.conftest import write

CONF = config_directory()


def _found(configs: Path, group: str, name: str) -> tuple[Option, Catalogue]:
    catalogue = find_catalogue([configs])
    return next(o for o in catalogue.options if (o.group, o.name) == (group, name)), catalogue


def _line(file: Path, text: str) -> Place:
    lines = file.read_text().splitlines()
    return Place(file, 1 + next(i for i, line in enumerate(lines) if text in line))


@pytest.mark.parametrize(
    ("key", "file", "text"),
    [
        ("speculation.num_steps", "experiment/good.yaml", "num_steps: 2"),
        ("policy.resume_at", "policy/mine.yaml", "resume_at"),
        ("policy", "experiment/good.yaml", "override /policy"),
        ("speculation", "experiment/good.yaml", "num_steps: 2"),
        ("speculation.nothing", "experiment/good.yaml", "num_steps: 2"),
        ("~nothing", "experiment/good.yaml", "# @package"),
    ],
)
def test_a_key_is_placed_where_it_is_set_or_where_it_would_be(
    key: str, file: str, text: str, configs: Path
) -> None:
    assert _line(configs / file, text) == place_of(key, *_found(configs, "experiment", "good"))


@pytest.mark.parametrize(
    ("key", "file", "text"),
    [
        ("speculation.topk", "speculation/eagle3_topk1.yaml", "topk"),
        ("speculation.draft.path", "speculation/eagle3_topk1.yaml", "path"),
        ("server.port", "server/default.yaml", "port"),
    ],
)
def test_a_key_of_a_shipped_option_is_placed_in_its_file(
    key: str, file: str, text: str, configs: Path
) -> None:
    assert _line(CONF / file, text) == place_of(key, *_found(configs, "experiment", "good"))


def test_a_key_of_an_option_is_placed_in_the_option(configs: Path) -> None:
    option = _found(configs, "policy", "mine")

    assert _line(configs / "policy/mine.yaml", "while_off") == place_of("policy.while_off", *option)


def test_a_file_that_is_named_with_its_line_is_the_place(configs: Path) -> None:
    write(configs, {"experiment/broken.yaml": "# @package _global_\npolicy: [off\n"})
    broken = configs / "experiment/broken.yaml"

    assert Place(broken, 3) == place_of(f"{broken}:3", *_found(configs, "experiment", "broken"))
    assert Place(broken, 1) == place_of(
        "experiment/broken.yaml", *_found(configs, "experiment", "broken")
    )
    assert Place(broken, 1) == place_of("policy", *_found(configs, "experiment", "broken"))
