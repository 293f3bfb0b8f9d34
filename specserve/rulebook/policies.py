"""Kind 4: the values of policies, and the calibrations that they decide by."""

from specserve.rule_ids import RuleId
from specserve.rulebook.rule import Rule

_CHAIN = "specserve check +experiment=topk1_v2"

RULES = (
    Rule(
        id=RuleId.TABLE_UNSORTED,
        title="A table of depths is not in increasing order",
        what="The lines' up_to do not increase, or repeat.",
        why="The first line that is not exceeded counts: a line behind a larger one never acts.",
        fix="Set the sorted table that the message shows.",
        example=f"{_CHAIN} policy=depth_schedule "
        "'policy.schedule=[{up_to:8,num_steps:1},{up_to:2,num_steps:3}]'",
    ),
    Rule(
        id=RuleId.TABLE_NEVER_SPECULATES,
        title="A table of depths without any depth",
        what="Every line has num_steps 0.",
        why="That is policy=off with more words, and a draft that is loaded for nothing.",
        fix="Choose policy=off, or give a line at least 1 step.",
        example=f"{_CHAIN} policy=acceptance 'policy.bounds.schedule=[{{up_to:4,num_steps:0}}]'",
    ),
    Rule(
        id=RuleId.RESUMES_ABOVE_THRESHOLD,
        title="Speculation resumes above the threshold that ends it",
        what="resume_at is larger than disable_above.",
        why="Between the two it would go off and on in every round.",
        fix="Set resume_at to disable_above or lower; lower by some keeps load at the threshold "
        "from flapping.",
        example=f"{_CHAIN} policy.resume_at=9",
    ),
    Rule(
        id=RuleId.DEPTH_NEVER_RETURNS,
        title="A depth never returns",
        what="hysteresis is larger than the first up_to of the schedule.",
        why="Its depth would return at fewer than 0 running decodes.",
        fix="Set hysteresis to the first up_to or lower.",
        example=f"{_CHAIN} policy=depth_schedule policy.hysteresis=5",
    ),
    Rule(
        id=RuleId.DEPTH_NEVER_CLEARS,
        title="No deeper depth is ever taken",
        what="min_acceptance and margin together are above 1.",
        why="A share of rounds is at most 1, so the deeper depth can never clear it.",
        fix="Lower margin below 1 - min_acceptance.",
        example=f"{_CHAIN} policy=acceptance policy.margin=0.9",
    ),
    Rule(
        id=RuleId.DEEPER_THAN_BUILT,
        title="A policy asks for more steps than are built",
        what="A line of the table is deeper than speculation.num_steps.",
        why="Buffers and graphs are made for num_steps; the line would be clipped without a word.",
        fix="Set the clipped table that the message shows, or raise speculation.num_steps.",
        example=f"{_CHAIN} policy=depth_schedule speculation.num_steps=2",
    ),
    Rule(
        id=RuleId.BAD_CALIBRATION,
        title="A calibration cannot be read",
        what="The file is missing, has another format, or its figures are no table.",
        why="A policy that decides by wrong figures is worse than a threshold.",
        fix="Set policy.calibration to a file that `specserve calibrate` wrote.",
        example=f"{_CHAIN} policy=cost_model policy.calibration=/nowhere.json",
    ),
    Rule(
        id=RuleId.CALIBRATION_OF_ANOTHER_TREE,
        title="A calibration of another topk",
        what="The round times were measured with another topk than this run drafts with.",
        why="Round times of a chain say nothing about a tree.",
        fix="Set speculation.topk to the measured one, or calibrate this topk.",
        example="a calibration of topk=1 for +experiment=topk4_v1",
    ),
    Rule(
        id=RuleId.CALIBRATION_LACKS_DEPTHS,
        title="A calibration without the depths that are needed",
        what="No measured depth lies within speculation.num_steps, or a policy can take depths "
        "that were not measured.",
        why="The depth cannot be compared with the others.",
        fix="Set speculation.num_steps to a measured depth, or calibrate again.",
        example="a calibration of depths 0 and 3 for speculation.num_steps=2",
    ),
    Rule(
        id=RuleId.POLICY_NOT_BUILT_FOR,
        title="The running worker was not built for this policy",
        what="A change at run time asks for a draft, a depth, a calibration or a while_off that "
        "the worker does not have.",
        why="What a policy can ask for is reserved when the worker is built.",
        fix="Ask for what was built, or start again with the policy in the configuration.",
        example='PUT /v1/policy {"kind": "always"} on a server with speculation=off',
    ),
    Rule(
        id=RuleId.POLICY_CHANGE,
        title="A change of the policy that cannot be read",
        what="The body of PUT /v1/policy is neither a policy, nor fields of one, nor a pin or a "
        "revert.",
        why="A half-understood change would steer a production server.",
        fix='Send what the message shows, for example {"pin": "off"}.',
        example='PUT /v1/policy {"pin": "maybe"}',
    ),
    Rule(
        id=RuleId.THRESHOLD_NEVER_ACTS,
        title="A limit of the policy that never acts",
        severity="danger",
        what="A threshold or a line of a table lies at or above scheduler.max_running_requests.",
        why="So many requests are never admitted: speculation stays on at full load, where it "
        "costs most.",
        fix="Lower the threshold, or raise max_running_requests.",
        example=f"{_CHAIN} policy.disable_above=16",
    ),
    Rule(
        id=RuleId.CALIBRATION_OF_ANOTHER_ENGINE,
        title="A calibration of another engine",
        severity="warning",
        what="The round times were measured with another engine than this run has.",
        why="The break-even moves by a factor between engines and attention back-ends.",
        fix="Calibrate with this engine.",
        example="a calibration of engine=torch for a run with engine=sglang",
    ),
    Rule(
        id=RuleId.CALIBRATION_OF_ANOTHER_DEVICE,
        title="A calibration of another GPU",
        severity="warning",
        what="The round times were measured on another GPU than this run is planned for.",
        why="The break-even differs between GPUs.",
        fix="Calibrate on this machine.",
        example="a calibration of an A100 for a run on an H200",
    ),
)
