"""Kind 0: the command line and the files that it names."""

from specserve.rule_ids import RuleId
from specserve.rulebook.rule import Rule

RULES = (
    Rule(
        id=RuleId.UNKNOWN_COMMAND,
        title="The first word is no command",
        what="A first word without = selects a command, and there is none of that name.",
        why="Taken for an override it would change nothing, and a server would start that nobody "
        "asked for.",
        fix="Use the command that the message names. An experiment is chosen with "
        "+experiment=NAME.",
        example="specserve chekc",
    ),
    Rule(
        id=RuleId.WRONG_FLAG,
        title="A flag is unknown, lacks its value, or has an impossible one",
        what="What begins with -- cannot be read as a flag of this command.",
        why="A flag that is ignored leaves the user believing that it acts.",
        fix="Correct it as the message says; `specserve --help` and `specserve COMMAND --help` "
        "list the flags.",
        example="specserve --frobnicate",
    ),
    Rule(
        id=RuleId.FLAG_OF_ANOTHER_COMMAND,
        title="The flag belongs to another command",
        what="The flag exists, but the command before it, or serving, has no use for it.",
        why="Serving with --facts, for example, would plan for one machine and run on another.",
        fix="Put the command that the message names in front.",
        example="specserve --to vllm",
    ),
    Rule(
        id=RuleId.FLAG_WITHOUT_CFG,
        title="--resolve and --package belong to --cfg",
        what="The two change how --cfg prints a configuration, and --cfg is missing.",
        why="Without it they would do nothing, and the run would start.",
        fix="Add --cfg job.",
        example="specserve --resolve",
    ),
    Rule(
        id=RuleId.MULTIRUN,
        title="Several runs at once are not available here",
        what="--multirun asks for a sweep, which this command does not do.",
        why="Only the first of the runs would happen.",
        fix="Leave out --multirun and give each key one value.",
        example="specserve --multirun policy=off,always",
    ),
    Rule(
        id=RuleId.NO_CONFIG_FOLDER,
        title="A folder of --config-dir does not exist",
        what="The folder whose configs should be added is not there.",
        why="Hydra only warns, and then takes the shipped option of the same name.",
        fix="Create the folder, or correct the name; it is seen from the current directory.",
        example="specserve check --config-dir /nowhere",
    ),
    Rule(
        id=RuleId.TWO_SEARCH_PATHS,
        title="hydra.searchpath and --config-dir exclude each other",
        what="Both say where configs are searched.",
        why="One would silently replace the other.",
        fix="Give every folder with --config-dir.",
        example="specserve check --config-dir / hydra.searchpath=[file:///tmp]",
    ),
    Rule(
        id=RuleId.NO_FACTS,
        title="--facts names no recorded facts",
        what="The file is missing, is no JSON, or lacks a field of the facts.",
        why="A plan for another machine is only as good as what was recorded there.",
        fix="Give the facts.json of a run directory from that machine.",
        example="specserve check --facts /nowhere.json",
    ),
    Rule(
        id=RuleId.RUN_DIRECTORY,
        title="The run directory exists already, or cannot be written",
        what="Every run has a folder of its own; this one is taken or out of reach.",
        why="A second run in the same folder mixes logs and overwrites what the first was made of.",
        fix="Set hydra.run.dir to a new folder, or leave it out: the run makes its own.",
        example="hydra.run.dir=/tmp, which exists",
    ),
    Rule(
        id=RuleId.WRONG_ARGUMENT,
        title="An argument of the command is missing or impossible",
        what="A word such as bs=N or acceptance=P has no value that the command can work with.",
        why="A guessed argument gives an answer to a question that nobody asked.",
        fix="Give it as the message shows.",
        example="specserve explain-policy bs=none",
    ),
    Rule(
        id=RuleId.UNWRITABLE_FILE,
        title="A file that is asked for cannot be written",
        what="The folder is missing, or this user may not write there.",
        why="The result would be lost after the work is done.",
        fix="Name a file in a folder that exists and can be written to.",
        example="specserve export --to vllm --drop hysteresis,min_dwell_rounds,while_off "
        "--output /nowhere/vllm.yaml +experiment=topk1_v2",
    ),
    Rule(
        id=RuleId.UNKNOWN_RULE,
        title="--explain names no rule",
        what="There is no rule of that id.",
        why="Ids are written SPEC and three digits, as in the brackets at the end of a message.",
        fix="Take the id that the message offers, or `specserve check --explain` for the list.",
        example="specserve check --explain SPEC999",
    ),
)
