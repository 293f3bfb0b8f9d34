"""The keys of a run's configuration, read off the models: which exist, and which was meant."""

from collections.abc import Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic.fields import FieldInfo

from specserve.config.run import RunConfig
from specserve.config.strict import StrictModel

_OPTION_OF_KIND = {
    ("speculation", "eagle3"): "eagle3_topk1",
    ("speculation", "eagle"): "eagle_topk1",
}


def all_keys() -> list[str]:
    """Every key that some configuration can hold, dotted and sorted, over all kinds."""
    return sorted(set(_leaves(RunConfig, ())))


def family(annotation: object) -> list[type[StrictModel]]:
    """The models that a section may be: one, or one per kind; none if it is a plain value."""
    if isinstance(annotation, type) and issubclass(annotation, StrictModel):
        return [annotation]
    if get_origin(annotation) is Annotated:
        return family(get_args(annotation)[0])
    if get_origin(annotation) is Union or type(annotation).__name__ == "UnionType":
        return [model for member in get_args(annotation) for model in family(member)]
    return []


def kinds(models: Sequence[type[StrictModel]]) -> dict[str, type[StrictModel]]:
    """The members of a family by their `kind`; empty for a model that has none or several."""
    if len(models) < 2:
        return {}
    return {get_args(model.model_fields["kind"].annotation)[0]: model for model in models}


def field_at(parts: Sequence[str], tree: Mapping[str, Any]) -> FieldInfo | None:
    """The field that the dotted key `parts` names, given the kinds chosen in `tree`."""
    models: list[type[StrictModel]] = [RunConfig]
    node: Any = tree
    found: FieldInfo | None = None
    for part in parts:
        found = next((m.model_fields[part] for m in models if part in m.model_fields), None)
        if found is None:
            return None
        node = node.get(part) if isinstance(node, Mapping) else None
        models = chosen(family(found.annotation), node)
    return found


def chosen(models: list[type[StrictModel]], node: object) -> list[type[StrictModel]]:
    """The member of a family that the `kind` in `node` selects; all of them if it selects none."""
    kind = node.get("kind") if isinstance(node, Mapping) else None
    member = kinds(models).get(kind) if isinstance(kind, str) else None
    return models if member is None else [member]


def dotted_key(location: Sequence[int | str], tree: Mapping[str, Any]) -> str:
    """Name a pydantic location the way Hydra would.

    Union tags and names of union members are no keys; an entry of a list is named by its list.
    """
    parts: list[str] = []
    node: Any = tree
    for index, part in enumerate(location):
        if not isinstance(node, Mapping):
            break
        if part in node:
            node = node[part]
        elif index < len(location) - 1:
            continue
        parts.append(str(part))
    return ".".join(parts)


def option_of_kind(section: str, kind: str) -> str:
    """The shipped option of group `section` that has this kind."""
    return _OPTION_OF_KIND.get((section, kind), kind)


def nearest(name: str, names: Sequence[str], cutoff: float = 0.6) -> str | None:
    """The entry of `names` that `name` probably means; hyphens and case do not count.

    `cutoff` is the least similarity, 0 to 1. Of equally near names the first in order wins.
    """
    plain = name.replace("-", "_").casefold()
    scores = {other: SequenceMatcher(None, plain, other).ratio() for other in sorted(names)}
    best = max(scores, key=lambda other: scores[other], default=None)
    return best if best is not None and scores[best] >= cutoff else None


def meant_key(key: str, tree: Mapping[str, Any]) -> str | None:
    """The valid key that the unknown `key` probably means.

    A slip in its section comes first, then the same name in another section (the less nested one
    of two), then a slip anywhere.
    """
    section, _, name = key.rpartition(".")
    siblings = _open_keys(section, tree)
    near = nearest(name, [k.rpartition(".")[2] for k in siblings], cutoff=0.75)
    if near is not None:
        return next(k for k in siblings if k.rpartition(".")[2] == near)
    for home in sorted(all_keys(), key=lambda known: known.count(".")):
        if home.rpartition(".")[2] == name and name != "kind":
            return home
    return nearest(key, all_keys(), cutoff=0.8)


def _open_keys(section: str, tree: Mapping[str, Any]) -> list[str]:
    """The keys directly in `section` under the kinds chosen in `tree`."""
    field = field_at(section.split("."), tree) if section else None
    node: Any = tree
    for part in section.split(".") if section else ():
        node = node.get(part) if isinstance(node, Mapping) else None
    models = [RunConfig] if not section else chosen(family(field.annotation), node) if field else []
    prefix = f"{section}." if section else ""
    return [prefix + name for model in models for name in model.model_fields]


def _leaves(model: type[StrictModel], path: tuple[str, ...]) -> Iterator[str]:
    for name, field in model.model_fields.items():
        members = family(field.annotation)
        if not members:
            yield ".".join((*path, name))
        for member in members:
            yield from _leaves(member, (*path, name))
