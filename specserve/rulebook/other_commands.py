"""Kind 8: what `export`, `policy replay` and `explain-policy` cannot do."""

from specserve.rule_ids import RuleId
from specserve.rulebook.rule import Rule

RULES = (
    Rule(
        id=RuleId.NOTHING_TO_EXPORT,
        title="Nothing that speculates",
        what="Speculation or the policy is off, so there is no speculative setting to write.",
        why="The other engine does the same without any setting.",
        fix="Choose an option of speculation and a policy.",
        example="specserve export --to vllm",
    ),
    Rule(
        id=RuleId.NOT_EXPORTABLE,
        title="The other engine cannot express this",
        what="Its configuration has no form for this policy, tree or table.",
        why="An approximation would run otherwise than what was reviewed.",
        fix="Choose what the message offers, or the engine that can.",
        example="specserve export --to vllm +experiment=topk4_v1",
    ),
    Rule(
        id=RuleId.LOST_IN_EXPORT,
        title="Something would be lost in the export",
        what="The other engine does not know a part of the policy, such as its hysteresis.",
        why="Lost in silence it would be missed under load.",
        fix="Accept it by name with --drop, or set the key so that nothing is lost.",
        example="specserve export --to vllm +experiment=topk1_v2",
    ),
    Rule(
        id=RuleId.BAD_TRACE,
        title="A recorded load cannot be read",
        what="The trace has a missing column, a value that is no number, or times that do not "
        "increase.",
        why="A replay of half a trace compares policies on a load that never was.",
        fix="Correct the line that the message names.",
        example="a trace without the column running_decodes",
    ),
    Rule(
        id=RuleId.NO_PLOT,
        title="matplotlib is not installed",
        what="--plot draws with matplotlib, which is an optional dependency.",
        why="Servers and CI draw nothing.",
        fix="Install specserve[plot], or leave out --plot.",
        example="--plot load.svg without matplotlib",
    ),
)
