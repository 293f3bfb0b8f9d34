"""Shell completion of overrides is Hydra's; this lets it see past specserve's own commands."""

from collections.abc import Sequence


def for_hydra(line: str) -> str:
    """The line being typed as Hydra can read it: overrides only, and the word that is unfinished.

    Commands, flags and their values before that word are left out.
    """
    program, *words = line.split(" ")
    *before, last = words or [""]
    overrides = [word for word in before if "=" in word and not word.startswith("-")]
    return " ".join([program, *overrides, "" if last.startswith("-") else last])


def commands_for(line: str, commands: Sequence[str]) -> list[str]:
    """Commands that the unfinished word may become: at the beginning, or behind their first word.

    Of commands of two words the one that comes next.
    """
    _, *words = line.split(" ")
    *before, last = words or [""]
    done = [word for word in before if word]
    splits = [command.split() for command in commands]
    longer = [split for split in splits if split[: len(done)] == done and len(split) > len(done)]
    return sorted({split[len(done)] for split in longer if split[len(done)].startswith(last)})
