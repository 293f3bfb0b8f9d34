"""The page of all keys: what each accepts, its default, its meaning, and when it can change."""

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, get_args

from pydantic.fields import FieldInfo

from specserve.config.compose import config_directory
from specserve.config.describe import expectation
from specserve.config.keys import family
from specserve.config.run import RunConfig
from specserve.config.strict import StrictModel
from specserve.schema.options import default_options, option_names, option_values, purpose

_HEAD = """\
# Configuration

Every key of a run, read off the models and `conf/`; written by `specserve schema --reference`.

A run is composed from one option of each group (`speculation=eagle3_topk1`), single values
(`server.port=8080`) and experiments (`+experiment=topk1_v2`). `specserve check` says what does not
work before anything is started. A default is the value in the group's usual option (marked *), or
in the option of the kind that has the key; `required` has none, and must be given.

What can change while a run serves: the policy, with `PUT /v1/policy`, within what was built. All
other keys are read once, at the start.

**Editors** check and complete these files by the JSON Schema that their first line names. For a
folder of your own (`--config-dir`), write the schemas beside your files, and begin each with that
line (an experiment with `# @package _global_`, and then that line):

    specserve schema --output my_configs
    # yaml-language-server: $schema=schema.json

**Shells** complete commands, groups, options, experiments and keys:

    eval "$(specserve --shell-completion install=bash)"     # in ~/.bashrc; zsh and fish likewise
"""
_LIVE = "yes: `PUT /v1/policy`"
# Keys of a policy whose change needs something that is made at the start.
_BOUND_LIVE = {
    "policy.calibration": "no: the file is read at the start",
    "policy.while_off": f"{_LIVE}, but not to or from refill",
}


# Keys whose models say nothing of them, and not enough of themselves.
_UNTOLD = {
    "quantization.draft": "how the draft's weights are held: as they are stored, as the target's, "
    "or in a scheme of their own",
    "quantization.group_size": "weights of a row that share a scale",
    "server.max_body_bytes": "largest request body that is read",
}

_Use = tuple[str, FieldInfo, type[StrictModel]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """One key. `kinds` are those that have it, empty if all do; `defaults` are distinct values."""

    name: str
    kinds: tuple[str, ...]
    accepts: str
    defaults: tuple[str, ...]
    meaning: str
    live: str


def reference_page() -> str:
    """The whole page in Markdown."""
    conf = config_directory()
    usual = default_options(conf)
    lines = [_HEAD]
    for section, field in RunConfig.model_fields.items():
        models = family(field.annotation)
        lines += [f"## `{section}`", "", _subject(models[0]), ""]
        lines += [*_option_lines(section, usual[section]), ""]
        lines += [*_key_lines(section_keys(section)), ""]
    lines += ["## Experiments", "", *_experiment_lines()]
    return "\n".join(lines).rstrip() + "\n"


def section_keys(section: str) -> list[Key]:
    """The keys of a section over all its kinds, in the models' order."""
    models = family(RunConfig.model_fields[section].annotation)
    found: dict[str, list[_Use]] = {}
    for model in models:
        for name, field, owner in _leaves(model, (section,)):
            found.setdefault(name, []).append((_kind(model), field, owner))
    defaults = _defaults(section)
    return [
        Key(
            name=name,
            kinds=() if len(uses) == len(models) else tuple(kind for kind, _, _ in uses),
            accepts=_accepts(name, uses),
            defaults=defaults.get(name, ()),
            meaning=_meaning(name, uses),
            live=_live(name),
        )
        for name, uses in found.items()
    ]


def _leaves(
    model: type[StrictModel], path: tuple[str, ...]
) -> Iterator[tuple[str, FieldInfo, type[StrictModel]]]:
    for name, field in model.model_fields.items():
        members = family(field.annotation)
        if not members:
            yield ".".join((*path, name)), field, model
        for member in members:
            yield from _leaves(member, (*path, name))


def _kind(model: type[StrictModel]) -> str:
    field = model.model_fields.get("kind")
    return str(get_args(field.annotation)[0]) if field else ""


def _accepts(name: str, uses: list[_Use]) -> str:
    if name.endswith(".kind") and len(uses) > 1:
        return f"one of {', '.join(kind for kind, _, _ in uses)}"
    return " or ".join(dict.fromkeys(expectation(field) for _, field, _ in uses))


def _meaning(name: str, uses: list[_Use]) -> str:
    """What the key's own description says; of a key without one, what its model says."""
    told = dict.fromkeys(field.description for _, field, _ in uses if field.description)
    if told:
        return "; or ".join(map(str, told))
    if name in _UNTOLD:
        return _UNTOLD[name]
    if name.endswith(".kind") and len(uses) > 1:
        return " ".join(f"`{kind}`: {_first_line(owner)}" for kind, _, owner in uses)
    return _first_line(uses[0][2])


def _defaults(section: str) -> dict[str, tuple[str, ...]]:
    """Of each key the value of the usual option; of others those of the options that have it."""
    conf = config_directory()
    folder, usual = conf / section, default_options(conf)[section]
    values = {f"{section}.{key}": [v] for key, v in option_values(folder, usual).items()}
    for option in option_names(folder):
        for key, value in option_values(folder, option).items():
            if key not in option_values(folder, usual):
                values.setdefault(f"{section}.{key}", []).append(value)
    return {key: tuple(dict.fromkeys(map(_shown, each))) for key, each in values.items()}


def _shown(value: Any) -> str:  # noqa: ANN401 - any value of a YAML file
    if value == "???":
        return "required"
    return f"`{value if isinstance(value, str) else json.dumps(value)}`"


def _live(name: str) -> str:
    return _BOUND_LIVE.get(name, _LIVE) if name.startswith("policy.") else "no"


def _subject(model: type[StrictModel]) -> str:
    """What the module of the group says of it, as a sentence."""
    text = (sys.modules[model.__module__].__doc__ or "").partition(": ")[2].strip()
    return text[:1].upper() + text[1:]


def _first_line(model: type[StrictModel]) -> str:
    return (model.__doc__ or "").strip().partition("\n")[0]


def _option_lines(section: str, usual: str) -> Iterator[str]:
    folder = config_directory() / section
    yield "| option | what it is |"
    yield "|---|---|"
    for option in option_names(folder):
        mark = " *" if option == usual else ""
        yield f"| `{option}`{mark} | {_cell(purpose(folder / f'{option}.yaml'))} |"


def _key_lines(keys: list[Key]) -> Iterator[str]:
    yield "| key | accepts | default | meaning | at run time |"
    yield "|---|---|---|---|---|"
    for key in keys:
        kinds = f" ({', '.join(key.kinds)})" if key.kinds else ""
        cells = [
            f"`{key.name}`{kinds}",
            key.accepts,
            ", ".join(key.defaults),
            key.meaning,
            key.live,
        ]
        yield f"| {' | '.join(map(_cell, cells))} |"


def _experiment_lines() -> Iterator[str]:
    folder = config_directory() / "experiment"
    yield "| experiment | what it is |"
    yield "|---|---|"
    for name in option_names(folder):
        told = purpose(folder / f"{name}.yaml").partition(f"+experiment={name} ")[2]
        yield f"| `+experiment={name}` | {_cell(told)} |"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
