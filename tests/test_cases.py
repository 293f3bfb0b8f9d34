"""The public cases about configuration (A to G), each replayed by a run that is checked.

A row is a case: its id, overrides of the experiment topk1_v2 on a small pair, what is known of
pair and machine, and the rule that must tell of it, with words of its message; no rule where the
run must be accepted. What needs more than that has a test below, under the case's id; cases that
are about a running server are replayed elsewhere, and REPLAYED_BY names the test.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from specserve.check import report_on
from specserve.check.survey import survey
from specserve.config.compose import compose_tree
from specserve.config.load import load_run
from specserve.errors import ConfigError, Problem
from specserve.facts import Facts
from specserve.plan import Plan, make_plan
from specserve.rule_ids import RuleId
from specserve.sglang_engine.settle import server_arguments
from specserve.sglang_engine.versions import SUPPORTED
from tests.fixes import apply_fixes
from tests.rulebook.pairs import (
    CPU,
    DRAFT,
    DRAFT_VOCAB,
    TARGET,
    VOCAB,
    draft,
    facts,
    gpu_machine,
    target,
)
from tests.rulebook.scenes import told

PAIR = ("+experiment=topk1_v2", f"model.path={TARGET}", f"model.draft_path={DRAFT}")
SGLANG = ("engine=sglang", "policy=always")
OFF = ("speculation=off", "policy=off")
TREE = ("speculation=eagle3_topk4",)
GPU = facts(machine=gpu_machine())
NGRAM = (*SGLANG, "speculation=ngram", "engine.page_size=16")
STANDALONE = (*SGLANG, "speculation=standalone", "speculation.draft.path=/tmp/x/eagle-test")
PLAIN_DRAFT = target().model_copy(update={"path": "/tmp/x/eagle-test", "sha256": "another"})
LARGE: dict[str, Any] = {"hidden_size": 4096, "intermediate_size": 11008, "head_dim": 1024}
AWQ = {"quant_method": "awq", "bits": 4, "group_size": 64}
HALF = "speculation={kind: eagle3, num_draft_tokens: 8, draft: {path: /d, aux_layer_ids: auto, "


@dataclass(frozen=True, slots=True)
class Case:
    """`rule` None: accepted. `words` stand in the message."""

    id: str
    overrides: Sequence[str]
    rule: RuleId | None
    words: Sequence[str] = ()
    known: Facts = field(default_factory=facts)


CASES = [
    # A02: EAGLE-3 without a draft path loads the target twice
    Case("A02", ["model.draft_path=null"], RuleId.NO_DRAFT_PATH, ["speculation.draft.path"]),
    Case("A02", [], RuleId.NOT_AN_EAGLE3_HEAD, ["the target itself"], facts(draft=target())),
    Case(
        "A02",
        [*SGLANG, "speculation=mtp"],
        None,
        known=facts(machine=gpu_machine(), target=target(num_nextn_predict_layers=1), draft=None),
    ),
    # A04: topk > 1 with the overlap (V2) worker; every supported release drafts trees there
    Case("A04", [*SGLANG, *TREE, "scheduler=overlap"], None, known=GPU),
    Case("A04", [*SGLANG, *TREE, "scheduler=sync"], None, known=GPU),
    Case("A04", [*SGLANG, "scheduler=overlap"], None, known=GPU),
    # A05: topk > 1 and page_size > 1 on an attention back-end without support
    Case(
        "A05",
        [*NGRAM, "attention=triton"],
        RuleId.TREE_WITHOUT_SUPPORT,
        ["attention=triton", "speculation.max_breadth=10", "engine.page_size=16", "flashinfer"],
        GPU,
    ),
    Case("A05", [*NGRAM, "attention=flashinfer"], None, known=GPU),
    Case("A05", [*NGRAM, "attention=triton", "engine.page_size=1"], None, known=GPU),
    Case("A05", [*SGLANG, *TREE, "attention=triton", "engine.page_size=16"], None, known=GPU),
    Case(
        "A05",
        ["engine=sglang", *OFF, "attention=triton", "engine.page_size=16"],
        None,
        known=GPU,
    ),
    # A09: an explicit method is never replaced by what a path or a type looks like
    Case("A09", STANDALONE, None, known=facts(machine=gpu_machine(), draft=PLAIN_DRAFT)),
    Case(
        "A09",
        STANDALONE,
        RuleId.DRAFT_OF_ANOTHER_METHOD,
        ["standalone", "eagle3", "LlamaForCausalLMEagle3"],
        GPU,
    ),
    Case(
        "A09",
        [],
        RuleId.NOT_AN_EAGLE3_HEAD,
        ["speculation.kind=eagle3", "architecture LlamaForCausalLM"],
        facts(draft=PLAIN_DRAFT),
    ),
    # B01: the draft and the graphs count in the memory budget
    Case(
        "B01",
        ["scheduler.max_running_requests=4096"],
        RuleId.REQUESTS_DO_NOT_FIT,
        ["draft weight", "draft kv", "max_running_requests="],
        facts(machine=CPU.model_copy(update={"memory_bytes": 3 * 2**29})),
    ),
    Case(
        "B01",
        [*SGLANG, "engine.memory_fraction=0.05"],
        RuleId.WEIGHTS_DO_NOT_FIT,
        ["engine.memory_fraction="],
        facts(
            machine=gpu_machine(),
            target=target(headers=False, num_hidden_layers=32, **LARGE),
            draft=draft(headers=False, target_hidden_size=4096, **LARGE),
        ),
    ),
    # B02: a target without a hook for auxiliary hidden states
    Case(
        "B02",
        [],
        RuleId.UNSUPPORTED_ARCHITECTURE,
        ["FooForCausalLM", "LlamaForCausalLM", "Qwen3ForCausalLM"],
        facts(target=target(architectures=["FooForCausalLM"])),
    ),
    # B04: as many auxiliary layers as the fusion layer takes
    Case(
        "B04",
        ["speculation.draft.aux_layer_ids=[1,3]"],
        RuleId.AUX_LAYER_COUNT,
        ["192 = 3 x 64", "2 x 64 = 128"],
    ),
    Case("B04", ["speculation.draft.aux_layer_ids=[1,3,5]"], None),
    # C05: sampling becomes greedy on one platform: told before the start
    Case(
        "C05",
        [*SGLANG, "engine.device=cpu", "scheduler=sync"],
        RuleId.GREEDY_ON_A_CPU,
        ["temperature", "first token only"],
    ),
    # D01: a threshold that is accepted and never acts
    Case(
        "D01",
        ["policy.disable_above=16"],
        RuleId.THRESHOLD_NEVER_ACTS,
        ["max_running_requests=16"],
    ),
    Case("D01", ["policy.disable_above=15"], None),
    Case(
        "D01",
        [
            "policy=depth_schedule",
            "policy.schedule=[{up_to:8,num_steps:3},{up_to:16,num_steps:2},{up_to:32,num_steps:1}]",
        ],
        RuleId.THRESHOLD_NEVER_ACTS,
        ["up_to=32"],
    ),
    Case(
        "D01",
        ["policy=acceptance", "policy.bounds.disable_above=64"],
        RuleId.THRESHOLD_NEVER_ACTS,
        ["policy.bounds.disable_above=64"],
    ),
    Case(
        "D01",
        ["engine=sglang", *STANDALONE[2:], "policy=batch_threshold"],
        RuleId.POLICY_NOT_STEERABLE,
        ["standalone"],
        facts(machine=gpu_machine(), draft=PLAIN_DRAFT),
    ),
    Case("D01", ["speculation=off"], RuleId.POLICY_WITHOUT_DRAFT, ["no draft is loaded"]),
    # D05: graph coverage in the right unit and for every mode
    Case(
        "D05",
        [
            "scheduler.max_running_requests=64",
            "policy.disable_above=16",
            "speculation.num_draft_tokens=4",
            "cuda_graph.batch_sizes=[1,2,4,8,16,32]",
        ],
        RuleId.GRAPHS_UNCOVERED,
        ["plain mode needs 64 requests", "33 to 64 uncovered", "64 tokens a step"],
        GPU,
    ),
    # E03: missing draft tensors
    Case(
        "E03",
        [],
        None,
        known=facts(draft=draft(drop=["lm_head.weight", "d2t", "t2d"], draft_vocab_size=VOCAB)),
    ),
    Case(
        "E03",
        [],
        RuleId.DRAFT_TENSORS,
        ["missing: lm_head.weight", f"{DRAFT_VOCAB} of {VOCAB}"],
        facts(draft=draft(drop=["lm_head.weight"])),
    ),
    Case(
        "E03",
        [],
        RuleId.DRAFT_TENSORS,
        ["missing: midlayer.mlp.up_proj.weight", "unexpected: layers.0.mlp.up_proj.weight"],
        facts(
            draft=draft(
                drop=["midlayer.mlp.up_proj.weight"],
                change={"layers.0.mlp.up_proj.weight": draft().tensors["fc.weight"]},  # type: ignore[index]
            )
        ),
    ),
    # E04: a reduced draft vocabulary without a usable mapping
    Case("E04", [], RuleId.DRAFT_TENSORS, ["d2t"], facts(draft=draft(drop=["d2t"]))),
    Case(
        "E04",
        [],
        RuleId.VOCABULARY_MAPS_DISAGREE,
        ["differ in"],
        facts(draft=draft(marked=range(100, 100 + DRAFT_VOCAB))),
    ),
    Case(
        "E04",
        [],
        RuleId.VOCABULARY_MAP_RANGE,
        ["offsets", "outside"],
        facts(draft=draft(d2t=[3 * index for index in range(DRAFT_VOCAB)])),
    ),
    Case(
        "E04",
        [],
        None,
        known=facts(draft=draft(d2t=[7] * DRAFT_VOCAB, marked=range(7, 7 + DRAFT_VOCAB))),
    ),
    # E05: auxiliary layers that nobody names
    Case(
        "E05",
        [],
        RuleId.AUX_LAYERS_GUESSED,
        ["[2,40,77] (input convention)", "speculation.draft.aux_layer_ids=[2,40,77]"],
        facts(
            target=target(headers=False, num_hidden_layers=80),
            draft=draft(headers=False, eagle_config=None),
        ),
    ),
    Case("E05", ["speculation.draft.aux_layer_ids=[1,40,5]"], RuleId.AUX_LAYER_IDS, ["0 to 7"]),
    Case(
        "E05",
        ["speculation.draft.aux_layer_ids=[2,4,8]", "speculation.draft.aux_layer_convention=input"],
        None,
    ),
    Case("E05", ["speculation.draft.aux_layer_ids=[2,4,8]"], RuleId.AUX_LAYER_IDS, ["0 to 7"]),
    # G03: unknown and misplaced keys
    Case("G03", ["++speculation.topkk=2"], RuleId.UNKNOWN_KEY, ["speculation.topk"]),
    Case("G03", ["speculation.num-steps=2"], RuleId.UNKNOWN_KEY, ["speculation.num_steps"]),
    Case("G03", ["num_steps=2"], RuleId.UNKNOWN_KEY, ["speculation.num_steps"]),
    # G06: type surprises between YAML, OmegaConf and pydantic
    Case("G06", ["speculation.topk=true"], RuleId.WRONG_VALUE, ["not a boolean"]),
    Case("G06", ["speculation.num_steps=3.0"], RuleId.WRONG_VALUE, ["decimal point"]),
    Case("G06", ["speculation.num_steps='4'"], RuleId.WRONG_VALUE, ["without quotes"]),
    Case("G06", ["quantization=off"], RuleId.UNKNOWN_OPTION, ["quantization=none"]),
    Case("G06", ["model.name=25921e05"], RuleId.NUMBER_FOR_TEXT, ["25921e05"]),
    # G07: references and missing values
    Case("G07", ["server.host=${nothere}"], RuleId.BROKEN_REFERENCE, ["server.host", "nothere"]),
    Case(
        "G07",
        ["server.api_key=${oc.env:SPECSERVE_NOT_SET}"],
        RuleId.BROKEN_REFERENCE,
        ["SPECSERVE_NOT_SET"],
    ),
    Case("G07", ["policy=cost_model"], RuleId.VALUE_REQUIRED, ["policy.calibration", "required"]),
]

# Replayed on a running engine or server, or by building what ships.
REPLAYED_BY = {
    "C01": ("torch_engine/test_stop.py", "test_a_stop_within_the_budget_wins_and_one_beyond"),
    "C03": ("torch_engine/test_stop.py", "test_the_end_does_not_depend_on_how_tokens_come"),
    "C04": ("server/test_generation_routes.py", "test_a_banned_token_never_appears"),
    "C05": ("torch_engine/test_lossless.py", "test_texts_have_the_targets_distribution"),
    "C08": ("server/contract.py", "structured_output_is_refused_and_others_go_on"),
    "F04": ("worker/test_run_directory.py", "test_eight_processes_at_once_make_eight_folders"),
    "G05": ("config/test_quote.py", "test_a_quoted_path_survives_the_whole_composition"),
    "G09": ("test_conf.py", "test_an_unpacked_wheel_works_from_the_root_folder"),
}


def _name(case: Case) -> str:
    return f"{case.id}-{case.rule.name if case.rule else 'accepted'}"


@pytest.mark.parametrize("case", CASES, ids=map(_name, CASES))
def test_a_case_is_told_before_anything_is_loaded(case: Case) -> None:
    found = told(case.overrides, case.known)
    problems = [str(one) for one in found if isinstance(one, Problem)]

    if case.rule is None:
        assert [] == problems
        return
    [message, *_] = [str(one) for one in found if one.rule is case.rule] or ["nothing"]
    assert all(word in message for word in case.words), (message, problems)


@pytest.mark.parametrize("case", REPLAYED_BY)
def test_a_case_about_a_running_server_is_replayed_there(case: str) -> None:
    file, test = REPLAYED_BY[case]

    assert f"def {test}" in (Path(__file__).parent / file).read_text()


def test_a07_a_half_filled_block_names_what_is_missing_all_at_once() -> None:
    with pytest.raises(ConfigError) as refused:
        load_run([f"{HALF}aux_layer_convention: output}}}}", "policy=always"])

    assert {("SPEC204", "speculation.num_steps"), ("SPEC204", "speculation.topk")} == {
        (problem.rule, problem.key) for problem in refused.value.problems
    }


def _plan(known: Facts, *overrides: str) -> Plan:
    return make_plan(load_run([*PAIR, *overrides]).config, known)


@pytest.mark.parametrize("engine", [["engine=torch"], ["engine=sglang"]])
def test_a08_speculation_changes_nothing_else_without_saying_so(engine: list[str]) -> None:
    """What differs between off and on is an adjustment with a reason; what the user set stays."""
    limit = "scheduler.max_running_requests=256"
    on = _plan(GPU, *engine, "policy=always", limit)
    off = _plan(GPU, *engine, "speculation=off", "policy=off", limit)
    told_of = {change.key for plan in (on, off) for change in plan.adjustments}
    changed = {
        f"{section}.{key}"
        for section in ("target", "scheduler")
        for key, value in getattr(on, section).model_dump().items()
        if value != getattr(off, section).model_dump()[key]
    }

    assert 256 == on.scheduler.max_running_requests == off.scheduler.max_running_requests
    assert on.attention == off.attention
    # A row also holds what a round may write past the end; it is no setting.
    assert changed - {"scheduler.row_tokens"} <= told_of
    assert all(change.reason for change in on.adjustments)


def test_a08_every_release_of_sglang_is_given_the_users_limit() -> None:
    plan = _plan(GPU, *SGLANG, "scheduler.max_running_requests=256")

    for release in SUPPORTED:
        words = [w for one in server_arguments(plan, release).arguments for w in one.words(Path())]
        assert "256" == words[words.index("--max-running-requests") + 1]


def test_a10_what_ships_is_sound() -> None:
    assert () == survey([], [], None).failed


@pytest.mark.parametrize(
    "case",
    [case for case in CASES if case.rule and case.id in ("A05", "B01", "B04", "D01", "G03", "G06")],
    ids=_name,
)
def test_a10_the_advice_of_a_message_leads_to_a_sound_run(case: Case) -> None:
    problems = [one for one in told(case.overrides, case.known) if isinstance(one, Problem)]
    fixed = apply_fixes(case.overrides, problems)

    assert [] == [str(one) for one in told(fixed, case.known) if isinstance(one, Problem)]


SCHEMES: dict[str, tuple[list[str], dict[str, Any]]] = {
    "none": ([], {}),
    "awq": (["quantization=awq"], {"quantization_config": AWQ}),
    "fp8": (["quantization=fp8"], {}),
}


@pytest.mark.parametrize(
    ("scheme", "setting", "own_section", "expected"),
    [
        ("none", "none", False, "none"),
        ("none", "inherit", False, "none"),
        ("none", "fp8", False, "fp8"),
        ("awq", "none", False, "none"),
        ("awq", "inherit", False, RuleId.DRAFT_CANNOT_INHERIT),
        ("awq", "fp8", False, "fp8"),
        ("fp8", "none", False, "none"),
        ("fp8", "inherit", False, "fp8"),
        ("fp8", "fp8", False, "fp8"),
        *[
            (scheme, setting, True, RuleId.DRAFT_STORED_QUANTIZED)
            for scheme in SCHEMES
            for setting in ("none", "inherit", "fp8")
        ],
    ],
)
def test_e01_the_drafts_quantization_is_never_a_guess(
    scheme: str, setting: str, own_section: bool, expected: str | RuleId
) -> None:
    overrides, section = SCHEMES[scheme]
    overrides = [*SGLANG, *overrides, f"quantization.draft={setting}"]
    own: dict[str, Any] = {"quantization_config": AWQ} if own_section else {}
    known = facts(machine=gpu_machine(), target=target(**section), draft=draft(**own))

    if isinstance(expected, RuleId):
        assert expected in {one.rule for one in told(overrides, known)}
        return
    plan = _plan(known, *overrides)
    assert plan.speculation is not None
    assert expected == plan.speculation.draft.quantization


@pytest.mark.parametrize("asked", ["auto", "float32"])
@pytest.mark.parametrize("of_target", ["float16", "bfloat16"])
@pytest.mark.parametrize("of_draft", ["float16", "bfloat16"])
def test_e02_one_type_is_decided_before_loading_and_said(
    asked: str, of_target: str, of_draft: str
) -> None:
    known = facts(
        machine=gpu_machine(),
        target=target(torch_dtype=of_target),
        draft=draft(torch_dtype=of_draft),
    )
    plan = _plan(known, f"model.dtype={asked}")
    expected = of_target if asked == "auto" else asked
    said = " ".join(change.reason for change in plan.adjustments if change.key == "model.dtype")

    assert plan.speculation is not None
    assert expected == plan.target.dtype == plan.speculation.draft.dtype
    for role, stored in (("target", of_target), ("draft", of_draft)):
        assert stored == expected or f"the {role} is stored in {stored} and is cast" in said


def test_g01_an_experiment_without_its_header_is_refused(tmp_path: Path) -> None:
    (tmp_path / "experiment").mkdir()
    (tmp_path / "experiment/mine.yaml").write_text("speculation:\n  topk: 4\n")
    with pytest.raises(ConfigError, match=r"# @package _global_.*SPEC202"):
        load_run(["+experiment=mine"], [tmp_path])


def test_g03_three_typos_are_three_lines() -> None:
    found = told(["server.prot=1", "model.nam=a", "policy.resume=3"], facts())

    assert ["SPEC201"] * 3 == [one.rule for one in found]


@pytest.mark.parametrize(
    ("typed", "value"),
    [
        ("model.path=/ckpt/step=300", "/ckpt/step=300"),
        ("model.path=/a#b", "/a#b"),
        ("model.name=a,b", "a,b"),
        ("model.name='ü b'", "ü b"),
    ],
)
def test_g05_the_quoted_form_that_is_suggested_works(typed: str, value: str) -> None:
    overrides = [typed]
    try:
        load_run(overrides)
    except ConfigError as error:
        overrides = apply_fixes(overrides, error.problems)
    section, name = typed.partition("=")[0].split(".")

    assert value == load_run(overrides).config.model_dump()[section][name]


def test_g07_a_reference_is_resolved_even_where_nothing_reads_it() -> None:
    """A section that this run never uses holds it."""
    with pytest.raises(ConfigError, match=r"server\.host"):
        compose_tree(["server.host=${nothere}"])


def _types(value: object) -> set[type]:
    if isinstance(value, dict):
        return {dict, *(t for pair in value.items() for one in pair for t in _types(one))}
    if isinstance(value, list):
        return {list, *(t for one in value for t in _types(one))}
    return {type(value)}


def test_g08_only_plain_values_leave_the_composition() -> None:
    tree = compose_tree(["+experiment=topk1_v2", "policy=depth_schedule"])
    plan = _plan(GPU, *SGLANG)
    words = server_arguments(plan, SUPPORTED[-1]).arguments

    assert _types(tree) <= {str, int, float, bool, type(None), list, dict}
    assert tree == json.loads(json.dumps(tree))
    assert all(isinstance(word, str) for one in words for word in one.words(Path()))


def test_g09_a_relative_path_is_absolute_as_seen_from_the_caller(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "draft").mkdir()
    monkeypatch.chdir(tmp_path)
    run = load_run(["+experiment=topk1_v2", "model.draft_path=./draft"]).config

    assert str(tmp_path / "draft") == run.model_dump()["speculation"]["draft"]["path"]


def test_every_case_about_configuration_has_a_row_or_a_test() -> None:
    asked = (
        "A02 A04 A05 A07 A08 A09 A10 B01 B02 B04 C01 C03 C04 C05 C08 D01 D05 "
        "E01 E02 E03 E04 E05 F04 G01 G03 G05 G06 G07 G08 G09"
    ).split()
    named = {name[5:8].upper() for name in globals() if re.match(r"test_[a-g]\d\d_", name)}

    assert set(asked) == {case.id for case in CASES} | set(REPLAYED_BY) | named


def test_a_sound_pair_raises_no_doubt() -> None:
    """The rows differ from it in what they are about, and in nothing else."""
    assert () == report_on(load_run(PAIR).config, facts()).warnings
