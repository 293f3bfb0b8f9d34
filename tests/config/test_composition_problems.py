from pathlib import Path

import pytest

from specserve.config.composition_problems import missing_option, not_utf8, refused_by_hydra


def test_a_missing_option_lists_the_others_without_the_base_files() -> None:
    problem = missing_option("scheduler/synk", ["_limits", "overlap", "sync"], "In 'config': x")

    assert ("scheduler", "synk", "one of overlap, sync") == (
        problem.key,
        problem.value,
        problem.expected,
    )
    assert "choose scheduler=sync" == problem.fix


def test_the_file_that_named_it_is_told() -> None:
    problem = missing_option("nogroup/x", [], "In 'experiment/mine': Could not find 'nogroup/x'")

    assert "experiment/mine.yaml" in problem.expected


@pytest.mark.parametrize(
    ("message", "key"),
    [
        ("In 'experiment/a': Could not override 'speculaton'. No match in the defaults list.",
         "experiment/a.yaml"),
        ("Could not delete from config. 'foo.bar' does not exist.", "foo.bar"),
        ("Could not override 'policy@foo'.\nDid you mean to override policy?", "policy@foo"),
        ("Key 'dirr' not in 'RunDir'\n    full_key: hydra.run.dirr", "hydra.run.dirr"),
        ("something new", "conf"),
        ("", "conf"),
    ],
)  # fmt: skip
def test_the_key_or_the_file_is_found_in_hydras_words(message: str, key: str) -> None:
    assert key == refused_by_hydra(message).key


def test_files_in_another_encoding_are_found(tmp_path: Path) -> None:
    (tmp_path / "good.yaml").write_text("a: é", encoding="utf-8")
    (tmp_path / "bad.yaml").write_bytes(b"a: \xe9")

    assert str(tmp_path / "bad.yaml") == not_utf8([tmp_path]).key
