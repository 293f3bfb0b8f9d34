from pathlib import Path

import pytest

from specserve.check.catalogue import Option, find_catalogue
from specserve.check.options import check_options
from specserve.rule_ids import RuleId
from tests.check.conftest import write


def _problems(configs: Path) -> dict[str, list[RuleId]]:
    """The rules that each option breaks, sound ones left out."""
    options: list[Option] = [o for o in find_catalogue([configs]).options if not o.is_experiment]
    found = {f"{o.group}={o.name}": problems for o, problems in check_options(options, [configs])}

    assert len(options) == len(found)
    return {name: [p.rule for p in problems] for name, problems in found.items() if problems}


def test_every_shipped_option_is_sound_and_so_are_these(configs: Path) -> None:
    """Many are valid in company only, and some leave a value to the user: no fault of theirs."""
    assert {} == _problems(configs)


@pytest.mark.parametrize(
    ("file", "text", "rule"),
    [
        ("policy/bad.yaml", "kind: always\ndepth: 3\n", RuleId.UNKNOWN_KEY),
        ("policy/bad.yaml", "kind: sometimes\n", RuleId.WRONG_KIND),
        ("policy/bad.yaml", "kind: [off\n", RuleId.BAD_YAML),
        ("model/bad.yaml", "defaults:\n  - demo\ncontext_length: -1\n", RuleId.WRONG_VALUE),
        ("model/bad.yaml", "defaults:\n  - demo\nname: ${nothing}\n", RuleId.BROKEN_REFERENCE),
        (
            "speculation/bad.yaml",
            "defaults:\n  - eagle3_topk1\nnum_draft_tokens: 9\n",
            RuleId.CHAIN_LENGTH,
        ),
    ],
)
def test_a_fault_is_the_fault_of_one_option(
    file: str, text: str, rule: RuleId, configs: Path
) -> None:
    """Though it was composed together with options of the other groups."""
    write(configs, {file: text})
    group = file.partition("/")[0]

    assert {f"{group}=bad": [rule]} == _problems(configs)


def test_two_faults_in_one_composition_are_told_apart(configs: Path) -> None:
    write(configs, {"attention/zz.yaml": "kind: none\n", "logging/zz.yaml": "level: info\n"})

    assert {
        "attention=zz": [RuleId.WRONG_VALUE],
        "logging=zz": [RuleId.MISSING_KEY],
    } == _problems(configs)
