"""The settings as SGLang should report them: what was asked, and what SGLang makes of it."""

from collections.abc import Mapping

from specserve.checkpoint.architecture import architecture_name
from specserve.config.speculation import DflashSpeculation, NgramSpeculation
from specserve.plan import Plan, SglangPlan
from specserve.sglang_engine.arguments import ServerArguments, Value
from specserve.sglang_engine.rewrites import page_size_of
from specserve.sglang_engine.table import FROZEN_KV_DRAFTS
from specserve.sglang_engine.versions import Release


def reported_settings(
    plan: Plan, sglang: SglangPlan, arguments: ServerArguments, release: Release
) -> Mapping[str, Value | None]:
    """By SGLang's field names. What is not in it was left to SGLang, and may be anything."""
    settings: dict[str, Value | None] = dict(arguments.settings)
    settings["page_size"] = page_size_of(sglang, release)
    if settings.get("speculative_draft_model_quantization") == "unquant":
        settings["speculative_draft_model_quantization"] = None
    match sglang.speculation:
        case NgramSpeculation(num_draft_tokens=tokens, max_breadth=breadth):
            settings |= {
                "speculative_eagle_topk": breadth,
                "speculative_num_steps": tokens // breadth,
            }
        case DflashSpeculation():
            settings |= {"speculative_eagle_topk": 1, "speculative_num_steps": 1}
        case _ if settings.get("speculative_algorithm") in ("EAGLE", "NEXTN"):
            settings["speculative_algorithm"] = _family(plan, release)
    return settings


def _family(plan: Plan, release: Release) -> str:
    """NEXTN is another name of EAGLE, and both are another algorithm for some drafts."""
    draft = plan.speculation.draft.config if plan.speculation else {}
    frozen = architecture_name(draft) in FROZEN_KV_DRAFTS.at(release)
    return "FROZEN_KV_MTP" if frozen else "EAGLE"
