from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from specserve.config.load import load_run
from specserve.errors import ConfigError, Problem

ApplyFixes = Callable[[Sequence[str], Sequence[Problem]], list[str]]

# Overrides of one kind each, and the keys that the problems must name.
BROKEN: list[tuple[list[str], list[str]]] = [
    # a group or an option that does not exist
    (["quantization=off"], ["quantization"]),
    (["quantization=false"], ["quantization"]),
    (["quantization=no"], ["quantization"]),
    (["quantization.kind=off"], ["quantization.kind"]),
    (["policy=true"], ["policy"]),
    (["policy=null"], ["policy"]),
    (["speculation=eagle3_topk3"], ["speculation"]),
    (["+experiment=topk1_v3"], ["experiment"]),
    (["experiment=topk1_v2"], ["experiment"]),
    (["+policy=off"], ["+policy"]),
    (["++policy=off"], ["++policy"]),
    (["~policy"], ["policy"]),
    (["logging=yaml"], ["logging"]),
    # keys
    (["+experiment=topk1_v2", "speculation.topkk=2"], ["speculation.topkk"]),
    (["+experiment=topk1_v2", "++speculation.topkk=2"], ["speculation.topkk"]),
    (["+experiment=topk1_v2", "speculation.num-steps=2"], ["speculation.num-steps"]),
    (["+experiment=topk1_v2", "num_steps=2"], ["num_steps"]),
    (["+experiment=topk1_v2", "policy.num_steps=2"], ["policy.num_steps"]),
    (["+experiment=topk1_v2", "speculation.disable_above=9"], ["speculation.disable_above"]),
    (["modle.name=a"], ["modle.name"]),
    (["model.nothing_like_it=3"], ["model.nothing_like_it"]),
    (["nothing_like_it=3"], ["nothing_like_it"]),
    (["server.port.x=3"], ["server.port"]),
    # types
    (["+experiment=topk1_v2", "speculation.topk=true"], ["speculation.topk"]),
    (["+experiment=topk1_v2", "speculation.num_steps=3.0"], ["speculation.num_steps"]),
    (["+experiment=topk1_v2", "speculation.num_steps='4'"], ["speculation.num_steps"]),
    (["+experiment=topk1_v2", "speculation.num_steps=0"], ["speculation.num_steps"]),
    (["+experiment=topk1_v2", "speculation.num_steps=17"], ["speculation.num_steps"]),
    (
        ["+experiment=topk1_v2", "speculation.num_draft_tokens=many"],
        ["speculation.num_draft_tokens"],
    ),
    (["server.port=70000"], ["server.port"]),
    (["server.drain_seconds=-1"], ["server.drain_seconds"]),
    (["build.limit_seconds.load_target=0"], ["build.limit_seconds.load_target"]),
    (["build.limit_seconds.load_target=inf"], ["build.limit_seconds.load_target"]),
    (["build.limit_seconds=10"], ["build.limit_seconds"]),
    (["engine=sglang", "engine.memory_fraction=1.5"], ["engine.memory_fraction"]),
    (["model.trust_remote_code='false'"], ["model.trust_remote_code"]),
    (["model.dtype=float23"], ["model.dtype"]),
    (["model.context_length=-1"], ["model.context_length"]),
    (["cuda_graph.batch_sizes=[1,0]"], ["cuda_graph.batch_sizes"]),
    (["cuda_graph.batch_sizes=8"], ["cuda_graph.batch_sizes"]),
    (["quantization=int4", "quantization.group_size=100"], ["quantization.group_size"]),
    (["model.name=1e10"], ["model.name"]),
    (["model.name=25921e05"], ["model.name"]),
    (["model.name=7"], ["model.name"]),
    (["model.name=true"], ["model.name"]),
    (["model.path=''"], ["model.path"]),
    (["server.api_key=1234"], ["server.api_key"]),
    (["server.api_key=''"], ["server.api_key"]),
    # values that Hydra's grammar refuses
    (["model.path=/ckpt/step=300"], ["model.path"]),
    (["model.path=/a#b"], ["model.path"]),
    (["model.path='a'b"], ["model.path"]),
    (["model.name=a,b"], ["model.name"]),
    (["cuda_graph.batch_sizes=1,2"], ["cuda_graph.batch_sizes"]),
    (["server.port=8000,8001"], ["server.port"]),
    (["policy=off,always"], ["policy"]),
    # sections that do not go together
    (["policy=always"], ["policy"]),
    (["policy=batch_threshold"], ["policy"]),
    (["+experiment=topk1_v2", "model.draft_path=null"], ["speculation.draft.path"]),
    (["+experiment=topk1_v2", "policy.resume_at=9"], ["policy.resume_at"]),
    (
        ["+experiment=topk1_v2", "policy=depth_schedule", "speculation.num_steps=2"],
        ["policy.schedule"],
    ),
    (
        [
            "+experiment=topk1_v2",
            "policy=depth_schedule",
            "policy.schedule=[{up_to:8,num_steps:9},{up_to:2,num_steps:1}]",
            "policy.hysteresis=3",
        ],
        ["policy.schedule", "policy.hysteresis"],
    ),
    (
        ["+experiment=topk1_v2", "policy=depth_schedule", "policy.schedule=[]"],
        ["policy.schedule"],
    ),
    (
        [
            "+experiment=topk1_v2",
            "policy=depth_schedule",
            "policy.schedule=[{up_to:0,num_steps:'2'},{up_to:4,num_steps:1.0}]",
            "policy.hysteresis=0",
        ],
        ["policy.schedule"],
    ),
    (
        [
            "+experiment=topk1_v2",
            "policy=acceptance",
            "policy.bounds.schedule=[{up_to:4,num_steps:0}]",
        ],
        ["policy.bounds.schedule"],
    ),
    (["+experiment=topk1_v2", "policy=acceptance", "policy.margin=0.9"], ["policy.margin"]),
    (["+experiment=topk1_v2", "policy=acceptance", "policy.margin=-1"], ["policy.margin"]),
    (
        ["+experiment=topk1_v2", "policy=acceptance", "policy.bounds.disable_above=0"],
        ["policy.bounds.disable_above"],
    ),
    (["+experiment=topk1_v2", "policy=cost_model"], ["policy.calibration"]),
    (
        [
            "+experiment=topk1_v2",
            "policy=cost_model",
            "policy.calibration=/x.json",
            "policy.max_inter_token_ms=0",
        ],
        ["policy.max_inter_token_ms"],
    ),
    (["quantization.draft=int8"], ["quantization.draft"]),
    (
        ["+experiment=topk1_v2", "speculation.num_draft_tokens=3"],
        ["speculation.num_draft_tokens"],
    ),
    (
        ["+experiment=topk4_v1", "speculation.num_draft_tokens=38"],
        ["speculation.num_draft_tokens"],
    ),
    (["attention=fa3"], ["attention"]),
    (["engine=sglang", "attention=sdpa"], ["attention"]),
    (["parallel=tp2"], ["parallel.tensor_parallel"]),
    (["engine=sglang", "parallel.num_nodes=2"], ["parallel.tensor_parallel"]),
    (["quantization=compressed_tensors_int4"], ["quantization"]),
    (["cuda_graph.batch_sizes=[4,2,2]"], ["cuda_graph.batch_sizes"]),
    (["cuda_graph.batch_sizes=[]"], ["cuda_graph.batch_sizes"]),
    (["scheduler.max_kv_tokens=10", "model.context_length=64"], ["scheduler.max_kv_tokens"]),
]


@pytest.mark.parametrize(("overrides", "keys"), BROKEN, ids=[" ".join(o) for o, _ in BROKEN])
def test_a_fix_applied_word_for_word_mends_the_run(
    overrides: list[str],
    keys: list[str],
    apply_fixes: ApplyFixes,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SPECSERVE_API_KEY", "secret")
    with pytest.raises(ConfigError) as refused:
        load_run(overrides)

    assert set(keys) <= {problem.key for problem in refused.value.problems}

    load_run(apply_fixes(overrides, refused.value.problems))


def test_all_problems_are_told_at_once() -> None:
    """An option, an unknown key, the grammar, a type and a rule across sections."""
    with pytest.raises(ConfigError) as refused:
        load_run(
            [
                "+experiment=topk1_v2",
                "quantization=off",
                "model.path=/a=b",
                "speculation.topkk=2",
                "server.port='80'",
                "policy.resume_at=9",
            ]
        )

    assert {
        "quantization",
        "model.path",
        "speculation.topkk",
        "server.port",
        "policy.resume_at",
    } == {problem.key for problem in refused.value.problems}


def test_three_typos_are_three_lines() -> None:
    with pytest.raises(ConfigError) as refused:
        load_run(["+experiment=topk1_v2", "server.prot=1", "model.nam=a", "policy.resume=3"])

    assert [
        "model.nam='a': expected model.name, for there is no model.nam. "
        "Fix: set model.name=a in its place. [SPEC201]",
        "policy.resume=3: expected policy.resume_at, for there is no policy.resume. "
        "Fix: set policy.resume_at=3 in its place. [SPEC201]",
        "server.prot=1: expected server.port, for there is no server.prot. "
        "Fix: set server.port=1 in its place. [SPEC201]",
    ] == str(refused.value).splitlines()


def test_a_half_filled_section_names_exactly_what_is_missing() -> None:
    given = "{kind: eagle3, num_draft_tokens: 8, draft: {path: /d, aux_layer_ids: auto, "
    given += "aux_layer_convention: output}}"
    with pytest.raises(ConfigError) as refused:
        load_run([f"speculation={given}", "policy=always"])

    assert ["speculation.num_steps", "speculation.topk"] == [
        problem.key for problem in refused.value.problems
    ]


def test_a_key_of_the_wrong_kind_says_which_option_has_it() -> None:
    with pytest.raises(ConfigError, match="choose speculation=eagle3_topk1") as refused:
        load_run(["speculation.num_steps=3"])

    assert ["speculation.num_steps"] == [problem.key for problem in refused.value.problems]


@pytest.mark.parametrize("text", ["server.api_key=1234", "server.api_key=[secret1234]"])
def test_a_secret_is_not_repeated_in_an_error(text: str) -> None:
    with pytest.raises(ConfigError) as refused:
        load_run([text])

    assert "1234" not in str(refused.value)


def test_whole_numbers_do_where_fractions_are_allowed() -> None:
    run = load_run(["build.limit_seconds.load_target=10", "server.drain_seconds=0"])

    assert (10.0, 0.0) == (
        run.config.build.limit_seconds.load_target,
        run.config.server.drain_seconds,
    )


def test_the_run_directory_is_the_one_that_was_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    assert tmp_path / "out/x" == load_run(["hydra.run.dir=out/x"]).run_directory
    assert load_run([]).run_directory is None
