from pathlib import Path

from specserve.config.compose import config_directory
from specserve.schema.options import default_options, option_names, option_values, purpose

CONF = config_directory()


def test_an_option_has_the_values_of_those_that_it_is_made_of(tmp_path: Path) -> None:
    (tmp_path / "base.yaml").write_text("a: 1\nb: {c: 2, d: [3]}\ne: {}\n")
    (tmp_path / "own.yaml").write_text("defaults: [base, _self_]\na: 5\n")
    (tmp_path / "_part.yaml").write_text("a: 9\n")

    assert {"a": 5, "b.c": 2, "b.d": [3], "e": {}} == option_values(tmp_path, "own")
    assert ["base", "own"] == option_names(tmp_path)


def test_the_purpose_is_the_first_sentence_for_readers(tmp_path: Path) -> None:
    file = tmp_path / "x.yaml"
    file.write_text(
        "# @package _global_\n# yaml-language-server: $schema=s\n# One 0.5\n# B. Two.\na: 1\n"
    )

    assert "One 0.5 B." == purpose(file)


def test_usual_options_are_those_of_the_defaults_list() -> None:
    usual = default_options(CONF)

    assert ("demo", "off", "torch") == (usual["model"], usual["policy"], usual["engine"])
