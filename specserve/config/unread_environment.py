"""Compose without the environment: what strangers write must not get at a secret of this one."""

from collections.abc import Iterator
from contextlib import contextmanager

from omegaconf import OmegaConf
from omegaconf.resolvers import oc

_MISSING = object()


@contextmanager
def unread_environment() -> Iterator[None]:
    """Within it `${oc.env:NAME}` is the text `$NAME`, or its default if one is written there."""
    OmegaConf.register_new_resolver("oc.env", _named, replace=True)
    try:
        yield
    finally:
        OmegaConf.register_new_resolver("oc.env", oc.env, replace=True)


def _named(name: str, default: object = _MISSING) -> str | None:
    if default is _MISSING:
        return f"${name}"
    return None if default is None else str(default)
