"""Say in plain words what a field accepts, and which accepted value lies nearest to a wrong one."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from annotated_types import Ge, Gt, Le, Lt, MinLen, MultipleOf
from pydantic.fields import FieldInfo

from specserve.config.keys import family, kinds, nearest

_ATTRIBUTE: dict[type, str] = {
    Ge: "ge",
    Gt: "gt",
    Le: "le",
    Lt: "lt",
    MultipleOf: "multiple_of",
    MinLen: "min_length",
}
_NO = ("off", "no", "false", "none", "null", "")  # what people write for "none of it"


@dataclass(frozen=True, slots=True)
class _Form:
    """One form that a value may take: a type and its bounds."""

    kind: Any
    bounds: Mapping[type, float]

    @property
    def low(self) -> float | None:
        return self.bounds.get(Ge, self.bounds.get(Gt))

    @property
    def high(self) -> float | None:
        return self.bounds.get(Le, self.bounds.get(Lt))


def expectation(field: FieldInfo) -> str:
    """What `field` accepts: "an integer from 1 to 16", "text or null"."""
    models = family(field.annotation)
    if models:
        return _section_words(models)
    return " or ".join(dict.fromkeys(_words(form) for form in _forms_of(field)))


def mended(field: FieldInfo, wrong: object) -> object:
    """An accepted value near `wrong`.

    With nothing to go by, the field's own example, or the first value that the bounds allow.
    """
    forms = list(_forms_of(field))
    for form in forms:
        value = _converted(form, wrong)
        if value is not None:
            return value
    return field.examples[0] if field.examples else _first(forms)


def closest_option(options: Sequence[str], wrong: object) -> str | None:
    """The option that `wrong` probably means; a plain no means none or off, where there is one."""
    if wrong is False or wrong is None or (isinstance(wrong, str) and wrong.lower() in _NO):
        return next((option for option in options if option in ("none", "off")), None)
    return nearest(str(wrong), options)


def _section_words(models: list[Any]) -> str:
    names = kinds(models)
    keys = ", ".join(models[0].model_fields)
    return f"one of {', '.join(names)}" if names else f"a section with the keys {keys}"


def _forms_of(field: FieldInfo) -> Iterator[_Form]:
    yield from _forms(field.annotation, list(field.metadata))


def _forms(annotation: object, metadata: list[Any]) -> Iterator[_Form]:
    if get_origin(annotation) is Annotated:
        inner, *more = get_args(annotation)
        yield from _forms(inner, [*metadata, *_flat(more)])
    elif get_origin(annotation) in (Union, UnionType):
        for member in get_args(annotation):
            yield from _forms(member, metadata)
    else:
        yield _Form(annotation, _bounds(metadata))


def _flat(metadata: list[Any]) -> Iterator[Any]:
    for item in metadata:
        yield from item.metadata if isinstance(item, FieldInfo) else [item]


def _bounds(metadata: list[Any]) -> dict[type, float]:
    return {
        type(item): getattr(item, _ATTRIBUTE[type(item)])
        for item in metadata
        if type(item) in _ATTRIBUTE
    }


def _words(form: _Form) -> str:
    if get_origin(form.kind) is Literal:
        options = [str(option) for option in get_args(form.kind)]
        return options[0] if len(options) == 1 else f"one of {', '.join(options)}"
    if get_origin(form.kind) is list:
        return f"a list of {_items_words(get_args(form.kind)[0])}"
    if get_origin(form.kind) is dict:
        return "names with values"
    nouns = {bool: "true or false", str: "text", NoneType: "null", int: "an integer"}
    noun = nouns.get(form.kind, "a number")
    if form.kind is str and MinLen in form.bounds:
        noun = "text that is not empty"
    return f"{noun}{_range_words(form)}"


def _items_words(annotation: object) -> str:
    models = family(annotation)
    if models:
        keys = [f"{name} ({expectation(f)})" for name, f in models[0].model_fields.items()]
        return f"{{{', '.join(keys)}}}"
    return f"integers{_range_words(next(_forms(annotation, [])))}"


def _range_words(form: _Form) -> str:
    b = form.bounds
    words = ""
    if Ge in b and Le in b:
        words = f" from {b[Ge]} to {b[Le]}"
    elif Ge in b:
        words = f" of at least {b[Ge]}"
    elif Gt in b:
        words = f" above {b[Gt]}"
    if Lt in b:
        words += f" and below {b[Lt]}"
    if MultipleOf in b:
        words += f", a multiple of {b[MultipleOf]}"
    return words


def _converted(form: _Form, wrong: object) -> object:
    """`wrong` made into this form, or None if nothing of it can be kept."""
    if get_origin(form.kind) is Literal:
        return closest_option(get_args(form.kind), wrong)
    if get_origin(form.kind) is list:
        return _entries(get_args(form.kind)[0], wrong)
    if form.kind is bool and isinstance(wrong, str):
        return {"true": True, "false": False}.get(wrong.lower())
    if form.kind is str and isinstance(wrong, int | float) and not isinstance(wrong, bool):
        return str(wrong)
    if form.kind in (int, float):
        number = _number(wrong)
        return None if number is None else _within(form, number)
    return None


def _entries(annotation: object, wrong: object) -> list[dict[str, object]] | None:
    """The sections in a list, each key of them mended; None for anything else."""
    models = family(annotation)
    if not models or not isinstance(wrong, list) or not wrong:
        return None
    fields = models[0].model_fields
    entries = [entry if isinstance(entry, Mapping) else {} for entry in wrong]
    return [
        {name: mended(field, entry.get(name)) for name, field in fields.items()}
        for entry in entries
    ]


def _number(wrong: object) -> float | None:
    if isinstance(wrong, bool) or not isinstance(wrong, int | float | str):
        return None
    try:
        number = float(wrong)
    except ValueError:
        return None
    return number if abs(number) < float("inf") else None  # NaN is not below it either


def _within(form: _Form, number: float) -> int | float | None:
    step = form.bounds.get(MultipleOf, 1)
    value: float = number if form.kind is float else round(number / step) * step
    if form.low is not None and value < form.low:
        value = form.low
    if form.high is not None and value > form.high:
        value = form.high
    open_ended = value in (form.bounds.get(Gt), form.bounds.get(Lt))
    return None if open_ended else form.kind(value)


def _first(forms: list[_Form]) -> object:
    """The first value that any form allows, the names (auto, off) before numbers and text."""
    for form in forms:
        if get_origin(form.kind) is Literal:
            return get_args(form.kind)[0]
    form = forms[0]
    if NoneType in [f.kind for f in forms]:
        return None
    if form.kind is bool:
        return False
    if form.kind is str:
        return "NAME"
    if form.kind is int:
        return form.low if form.low is not None else 1
    if get_origin(form.kind) is list:
        return _entries(get_args(form.kind)[0], [{}])
    return _between(form)


def _between(form: _Form) -> float:
    """A number inside open bounds."""
    low = form.low if form.low is not None else 0.0
    return float(low + 1 if form.high is None else (low + form.high) / 2)
