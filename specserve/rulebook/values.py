"""Kind 2: keys and single values of a composed configuration."""

from specserve.rule_ids import RuleId
from specserve.rulebook.rule import Rule

RULES = (
    Rule(
        id=RuleId.UNKNOWN_KEY,
        title="There is no such key",
        what="The key is misspelt, or stands in the wrong section.",
        why="A key that is swallowed leaves the default in force, and the run differs from what "
        "was reviewed.",
        fix="Set the key that the message names in its place, or remove it.",
        example="specserve check +experiment=topk1_v2 speculation.topkk=2",
    ),
    Rule(
        id=RuleId.NO_PACKAGE_HEADER,
        title="An experiment file without its package header",
        what="Without `# @package _global_` in its first line, everything in the file lands under "
        "the key experiment.",
        why="Hydra accepts that, and the experiment changes nothing.",
        fix="Make `# @package _global_` the first line of the experiment file.",
        example="an experiment file that begins with `speculation:`",
    ),
    Rule(
        id=RuleId.KEY_OF_ANOTHER_KIND,
        title="Only another option of the group has this key",
        what="The key exists under another kind of the section than the one that is chosen.",
        why="The chosen kind never reads it.",
        fix="Choose the option that has the key, or remove the key.",
        example="specserve check speculation.num_steps=3",
    ),
    Rule(
        id=RuleId.MISSING_KEY,
        title="A key of the section is missing",
        what="A section was given whole, and lacks keys that its kind needs.",
        why="Defaults stand in conf/ only: what a section that is written by hand leaves out has "
        "none.",
        fix="Set the keys, or choose a shipped option and change single keys of it.",
        example="specserve check 'speculation={kind: eagle3, topk: 1}' policy=always",
    ),
    Rule(
        id=RuleId.WRONG_KIND,
        title="No kind of this name",
        what="The kind of a section selects its other keys, and there is none of this name.",
        why="A kind is best chosen through its option, which brings the keys along.",
        fix="Choose the option that the message names.",
        example="specserve check quantization.kind=fp3",
    ),
    Rule(
        id=RuleId.VALUE_FOR_A_SECTION,
        title="A value where a section belongs",
        what="The key is a section with keys of its own, and was given a single value.",
        why="The whole section would be replaced.",
        fix="Set its keys one by one, or choose an option of the group.",
        example="specserve check build.limit_seconds=10",
    ),
    Rule(
        id=RuleId.WRONG_VALUE,
        title="A value of the wrong type or out of bounds",
        what='The value is not what the key accepts. Counts are integers: 3.0, "4" and true are '
        "not.",
        why="A value that is quietly converted is not the one that was reviewed.",
        fix="Set what the message shows.",
        example="specserve check +experiment=topk1_v2 speculation.num_steps=3.0",
    ),
    Rule(
        id=RuleId.WRONG_SECRET,
        title="A secret is not text",
        what="A key that must not be shown has a value that is no text. The value is not repeated.",
        why="A number loses leading zeros and length, and would lock out every client.",
        fix="Put it into an environment variable and set the key to ${oc.env:NAME}.",
        example="specserve check server.api_key=1234",
    ),
    Rule(
        id=RuleId.NO_DRAFT_PATH,
        title="EAGLE-3 without a draft",
        what="Speculation is on, and neither speculation.draft.path nor model.draft_path names a "
        "head.",
        why="Engines then load the target a second time as its own draft, and fail much later with "
        "another message.",
        fix="Name the head's folder, or turn speculation off.",
        example="specserve check +experiment=topk1_v2 model.draft_path=null",
    ),
)
