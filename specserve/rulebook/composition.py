"""Kind 1: overrides and files, until a configuration is composed."""

from specserve.rule_ids import RuleId
from specserve.rulebook.rule import Rule

RULES = (
    Rule(
        id=RuleId.NOT_AN_OVERRIDE,
        title="A word is no override",
        what="The word is not of the form key=value, group=option or +experiment=NAME.",
        why="Hydra stops at it with a lexer error that names neither the key nor the remedy.",
        fix="Write it in one of these forms.",
        example="specserve check topk1_v2",
    ),
    Rule(
        id=RuleId.UNQUOTED_VALUE,
        title="A value needs quotes",
        what="The value has a character with a meaning in Hydra's grammar: = # , [ { and others.",
        why="Hydra cannot read it. The shell takes one pair of quotes away, so two are needed.",
        fix="Type what the message shows; it can be pasted.",
        example="specserve check model.path=/ckpt/step=300",
    ),
    Rule(
        id=RuleId.HYDRA_SETTING,
        title="A setting of Hydra's own is not heeded",
        what="specserve composes with Hydra but runs itself: it heeds hydra.run.dir and "
        "hydra.searchpath only.",
        why="Any other setting would be accepted and do nothing.",
        fix="Remove it.",
        example="specserve check hydra.mode=MULTIRUN",
    ),
    Rule(
        id=RuleId.SEVERAL_VALUES,
        title="Several values where one is wanted",
        what="A comma outside brackets is a sweep in Hydra's grammar.",
        why="One run has one value for each key; a list needs brackets, a text quotes.",
        fix="Type the brackets or quotes that the message shows, or choose one value.",
        example="specserve check server.port=8000,8001",
    ),
    Rule(
        id=RuleId.UNKNOWN_OPTION,
        title="The group has no such option",
        what="Neither the shipped conf/ nor the folders of --config-dir have a file of that name "
        "in the group.",
        why="YAML reads a bare off, no, on or yes as a boolean, which is a frequent cause.",
        fix="Choose the option that the message names.",
        example="specserve check quantization=off",
    ),
    Rule(
        id=RuleId.WRONG_SIGN,
        title="A group is chosen with the wrong sign",
        what="A group of the defaults list is chosen with group=option, one that is not in it with "
        "+group=option.",
        why="Hydra refuses the other form, in words that do not say which is right.",
        fix="Use the form that the message shows.",
        example="specserve check +policy=off",
    ),
    Rule(
        id=RuleId.NUMBER_FOR_TEXT,
        title="A name reads as a number or a boolean",
        what="A value without quotes became a number (1e10, 25921e05) or a boolean (off, yes).",
        why="Turned back into text it would be another name: 25921e05 becomes 2592100000.0.",
        fix="Quote it as the message shows.",
        example="specserve check model.name=25921e05",
    ),
    Rule(
        id=RuleId.UNKNOWN_FILE,
        title="A defaults list names a file that does not exist",
        what="An entry of a defaults list names a group without options, or a file that is not "
        "there.",
        why="Without it the configuration is not whole.",
        fix="Correct the name in the defaults list of the file that the message names.",
        example="an experiment with `- override /polcy: off`, or with `- nothing/like_it`",
    ),
    Rule(
        id=RuleId.BAD_YAML,
        title="A file is no YAML",
        what="The file cannot be parsed at the line that is named.",
        why="A tab, a missing colon or an open quote stops the whole composition.",
        fix="Mend that line.",
        example="a file with the line `kind: [off`",
    ),
    Rule(
        id=RuleId.NOT_UTF8,
        title="A file is not text in UTF-8",
        what="The file was saved in another encoding, or is no text.",
        why="YAML is UTF-8 here; in another encoding a name can change without notice.",
        fix="Save it as UTF-8.",
        example="a file with the single byte E9 for é",
    ),
    Rule(
        id=RuleId.BOOLEAN_OPTION,
        title="A defaults list has a boolean for a name",
        what="`- policy: off` is the boolean false to YAML, not the name off.",
        why="Hydra cannot choose an option by a boolean.",
        fix='Quote the name: `- override /policy: "off"`.',
        example="an experiment with `- override /policy: off`",
    ),
    Rule(
        id=RuleId.UNKNOWN_GROUP,
        title="A defaults list overrides a group that does not exist",
        what="`override /NAME` names no group of the defaults list.",
        why="Nothing would be overridden.",
        fix="Write the group that the message names.",
        example='an experiment with `- override /polcy: "off"`',
    ),
    Rule(
        id=RuleId.REFUSED_BY_HYDRA,
        title="Hydra refuses a file or an override",
        what="Something else that Hydra does not accept; its own words are in the message.",
        why="The configuration cannot be composed.",
        fix="Correct the file or the key that the message names.",
        example="specserve check ~no_such_key",
    ),
    Rule(
        id=RuleId.VALUE_REQUIRED,
        title="A required value is missing",
        what="The value is still ???, which marks what every user has to give.",
        why="No default would be right on two machines. Left alone it passes as text and fails "
        "later.",
        fix="Set the key.",
        example="specserve check +experiment=topk1_v2 policy=cost_model",
    ),
    Rule(
        id=RuleId.BROKEN_REFERENCE,
        title="A reference leads nowhere",
        what="${key} names a key that does not exist, or ${oc.env:NAME} a variable that is not "
        "set.",
        why="Hydra resolves a reference when it is touched: a server could start and fail later.",
        fix="Set the variable, set the key to a value, or correct the reference.",
        example="specserve check 'model.path=${nothere}'",
    ),
    Rule(
        id=RuleId.SHADOWED_FILE,
        title="Two files of one name in two folders",
        severity="danger",
        what="An option of a --config-dir has the name of one that is found earlier: conf/ first, "
        "then the folders in their order.",
        why="The later file never counts, and whoever edits it changes nothing.",
        fix="Give it another name.",
        example="a policy/always.yaml of your own",
    ),
    Rule(
        id=RuleId.FOLDER_OF_NO_GROUP,
        title="A folder that is no group",
        severity="warning",
        what="A folder of --config-dir with YAML files has a name that no group has.",
        why="`check --all` does not know what its files are for, and leaves them out.",
        fix="Name it after a group, or experiment.",
        example="experiments/mine.yaml in place of experiment/mine.yaml",
    ),
)
