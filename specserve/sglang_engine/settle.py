"""A plan for engine=sglang, held against the installed release: its arguments, or why not."""

from collections.abc import Mapping
from dataclasses import dataclass

from specserve.errors import ConfigError, Doubt
from specserve.plan import Plan
from specserve.rule_ids import RuleId
from specserve.sglang_engine.args import map_plan
from specserve.sglang_engine.arguments import ServerArguments, Value
from specserve.sglang_engine.extra import extra_problems
from specserve.sglang_engine.reported import reported_settings
from specserve.sglang_engine.rewrites import adjustments, doubts, rewrite_problems
from specserve.sglang_engine.versions import NEWEST, VERSION_KEY, Release, find_release


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """`plan` has SGLang's own decisions among its adjustments, with their doubts.

    `reported` is what the server should say of itself, by SGLang's field names.
    """

    plan: Plan
    arguments: ServerArguments
    reported: Mapping[str, Value | None]


def settle(plan: Plan, installed: str | None) -> Settled:
    """The plan as SGLang will carry it out. Pure.

    `installed` is SGLang's version; None, where it isn't installed, is planned for the newest
    supported one. Raises ConfigError with every value that this release would not keep, or with a
    release that is not supported.
    """
    sglang = plan.sglang
    if sglang is None:
        raise ValueError(f"a plan for engine={plan.engine} has no SGLang arguments")
    release = find_release(installed or NEWEST, allow_untested=sglang.engine.allow_untested_version)
    problems = [*extra_problems(plan, sglang, release), *rewrite_problems(plan, sglang, release)]
    if problems:
        raise ConfigError(problems)
    told = [*doubts(plan, sglang), *_untested(release)]
    settled = plan.model_copy(
        update={
            "adjustments": (*plan.adjustments, *adjustments(plan, sglang, release)),
            "warnings": (*plan.warnings, *told),
        }
    )
    arguments = map_plan(plan, sglang, release)
    return Settled(
        plan=settled,
        arguments=arguments,
        reported=reported_settings(plan, sglang, arguments, release),
    )


def server_arguments(plan: Plan, version: str) -> ServerArguments:
    """The arguments alone; raises as `settle` does."""
    return settle(plan, version).arguments


def _untested(release: Release) -> list[Doubt]:
    if not release.is_untested:
        return []
    return [
        Doubt(
            rule=RuleId.UNTESTED_VERSION,
            key=VERSION_KEY,
            text=f"SGLang {release.installed} is treated as {release.table}: names and defaults "
            "may differ, and only the comparison after the start would tell",
        )
    ]
