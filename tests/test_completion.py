"""Completion as a user has it: a real bash, the installed function, one key after the other."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from specserve.completion import commands_for, for_hydra

ROOT = Path(__file__).parent.parent
COMMANDS = ("export", "check", "policy replay", "explain", "explain-policy")
TYPED = {
    "a group": "sched",
    "an option": "scheduler=o",
    "an experiment": "+experiment=topk1",
    "a key": "server.po",
    "a key behind a command and a flag": "check --facts f.json +experiment=topk1_v2 server.po",
    "a command": "expo",
    "the second word of a command": "policy re",
}
# What bash does on TAB: the line and its words in variables, then the function; one line each.
_SCRIPT = """
eval "$(specserve --shell-completion install=bash)"
while IFS= read -r typed; do
    COMP_LINE="specserve $typed"
    read -ra COMP_WORDS <<< "$COMP_LINE"
    COMP_CWORD=$((${#COMP_WORDS[@]} - 1)) COMP_POINT=${#COMP_LINE} COMPREPLY=()
    hydra_bash_completion
    echo "${COMPREPLY[*]}"
done
"""


@pytest.fixture(scope="module")
def completed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """What bash offers for each of TYPED, and under "stderr" what a user would see in between."""
    folder = tmp_path_factory.mktemp("bin")
    program = folder / "specserve"
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m specserve "$@"\n')
    program.chmod(0o755)
    ran = subprocess.run(
        ["bash", "--norc", "-c", _SCRIPT],
        input="\n".join(TYPED.values()) + "\n",
        env={
            **os.environ,
            "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
        },
        cwd="/",
        capture_output=True,
        text=True,
        timeout=100,
    )
    lines = [line.split() for line in ran.stdout.splitlines()]
    return {**dict(zip(TYPED, lines, strict=True)), "stderr": ran.stderr.splitlines()}


@pytest.mark.parametrize(
    ("what", "offered"),
    [
        ("a group", ["scheduler.", "scheduler="]),
        ("an option", ["scheduler=overlap"]),
        ("an experiment", ["+experiment=topk1_v2"]),
        ("a key", ["server.port="]),
        ("a key behind a command and a flag", ["server.port="]),
        ("a command", ["export"]),
        ("the second word of a command", ["replay"]),
        ("stderr", []),
    ],
)
def test_bash_completes(completed: dict[str, list[str]], what: str, offered: list[str]) -> None:
    assert offered == sorted(completed[what])


@pytest.mark.parametrize(
    ("line", "read"),
    [
        ("specserve ", "specserve "),
        ("specserve server.po", "specserve server.po"),
        ("specserve check ", "specserve "),
        ("specserve check --facts f.json a=1 serv", "specserve a=1 serv"),
        ("specserve --cfg job a=1 --re", "specserve a=1 "),
        (
            "specserve policy replay --seed=3 +experiment=x policy.",
            "specserve +experiment=x policy.",
        ),
    ],
)
def test_hydra_sees_overrides_and_the_unfinished_word(line: str, read: str) -> None:
    assert read == for_hydra(line)


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("specserve ", ["check", "explain", "explain-policy", "export", "policy"]),
        ("specserve ex", ["explain", "explain-policy", "export"]),
        ("specserve policy ", ["replay"]),
        ("specserve check ", []),
        ("specserve server.port=1 ", []),
        ("specserve policy replay ", []),
    ],
)
def test_commands_are_offered_where_one_can_stand(line: str, offered: list[str]) -> None:
    assert offered == commands_for(line, COMMANDS)
