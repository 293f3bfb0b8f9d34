"""Every value of every shipped experiment has a file and a line that say just that."""

from pathlib import Path

import pytest

from specserve.config.compose import compose_tree, config_directory
from specserve.config.leaves import leaves
from specserve.origin import Setting, Trace, trace_run

EXPERIMENTS = sorted(file.stem for file in (config_directory() / "experiment").glob("*.yaml"))


def _setting(trace: Trace, key: str) -> Setting:
    origin = trace.of(key)
    assert origin is not None
    return origin.setting


def _place(setting: Setting) -> tuple[str | None, str | None]:
    name = None if setting.file is None else f"{setting.file.parent.name}/{setting.file.name}"
    return name, setting.typed


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_value_is_found_in_the_line_that_is_named(name: str) -> None:
    overrides = [f"+experiment={name}", "server.port=1"]
    trace = trace_run(overrides)
    for key, value in leaves(compose_tree(overrides)):
        setting = _setting(trace, key)
        if setting.file is None:
            assert "server.port=1" == setting.typed
            continue
        assert setting.line is not None
        line = setting.file.read_text().splitlines()[setting.line - 1]
        assert line.strip().startswith(f"{key.rpartition('.')[2]}:"), key
        assert value == setting.value or "${" in str(setting.value), key


def test_the_last_one_wins_and_those_before_are_kept_in_order(tmp_path: Path) -> None:
    (tmp_path / "experiment").mkdir()
    mine = tmp_path / "experiment/mine.yaml"
    mine.write_text(
        "# @package _global_\ndefaults:\n  - override /policy: batch_threshold\n"
        "  - override /speculation: eagle3_topk1\npolicy:\n  disable_above: 12\n"
    )
    trace = trace_run(["+experiment=mine", "policy.disable_above=16"], [tmp_path])
    origin = trace.origins["policy.disable_above"]

    assert (None, "policy.disable_above=16") == _place(origin.setting)
    assert [12, 8] == [one.value for one in origin.overrode]
    assert (mine, 6) == (origin.overrode[0].file, origin.overrode[0].line)


def test_a_choice_names_who_made_it_and_who_lost() -> None:
    choices = trace_run(["+experiment=topk1_v2", "policy=always"]).origins["policy.kind"].choices

    assert [("off", "config.yaml"), ("batch_threshold", "topk1_v2.yaml"), ("always", None)] == [
        (one.option, one.file.name if one.file else None) for one in choices
    ]
    assert "policy=always" == choices[-1].typed


def test_a_section_set_as_a_whole_ends_what_was_set_inside_and_back() -> None:
    whole = ["policy=acceptance", "++policy.bounds=7", "speculation=eagle3_topk1"]
    assert 7 == _setting(trace_run(whole), "policy.bounds.schedule").value

    back = trace_run([*whole, "++policy.bounds.schedule=[]"])
    assert [] == _setting(back, "policy.bounds.schedule").value
    assert [7] == [one.value for one in back.origins["policy.bounds.schedule"].overrode]


def test_a_mapping_in_an_override_sets_its_leaves() -> None:
    trace = trace_run(["server={port: 1, host: a}"])

    assert {1, "a"} == {_setting(trace, f"server.{key}").value for key in ("port", "host")}
    assert "default.yaml" in str(_setting(trace, "server.drain_seconds").file)


def test_what_was_deleted_has_no_origin() -> None:
    assert trace_run(["~server.port"]).of("server.port") is None
