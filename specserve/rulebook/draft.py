"""Kind 6: the EAGLE-3 head, alone and against its target."""

from specserve.rule_ids import RuleId
from specserve.rulebook.rule import Rule

RULES = (
    Rule(
        id=RuleId.NOT_AN_EAGLE3_HEAD,
        title="The draft is no EAGLE-3 head",
        what="speculation.kind is eagle3, and the checkpoint has neither the name nor the tensors "
        "of such a head.",
        why="The method that is asked for stays: it is never replaced by what the files look like.",
        fix="Set speculation.draft.path to a head made for this target, or turn speculation off.",
        example="specserve check +experiment=topk1_v2 speculation.draft.path=bundled:demo/target",
    ),
    Rule(
        id=RuleId.HEAD_OF_ANOTHER_TARGET,
        title="The head was made for another target",
        what="Its hidden size, vocabulary or number of layers is not that of a head for this "
        "target.",
        why="Hidden states of one model mean nothing to a head of another.",
        fix="Set speculation.draft.path to a head that was trained for this target.",
        example="a head with target_hidden_size 8192 for a target of 4096",
    ),
    Rule(
        id=RuleId.DRAFT_TENSORS,
        title="The tensors are not those of an EAGLE-3 head",
        what="Tensors are missing, unexpected or of another shape.",
        why="A missing one would keep random numbers: a healthy server with an acceptance of 0. "
        "Embedding and lm_head may be borrowed from the target where both have the same size.",
        fix="Export the head again in the published layout, whole.",
        example="a head with a reduced vocabulary and no lm_head.weight",
    ),
    Rule(
        id=RuleId.AUX_LAYER_IDS,
        title="Auxiliary layers that the target does not have",
        what="The ids are out of range, or not in increasing order.",
        why="The head concatenates the layers in the order in which it was trained.",
        fix="Set speculation.draft.aux_layer_ids to the ids that it was trained with.",
        example="aux_layer_ids [1, 40, 5] for a target of 32 layers",
    ),
    Rule(
        id=RuleId.AUX_LAYER_COUNT,
        title="More or fewer auxiliary layers than the head takes",
        what="The number of ids times the target's hidden size is not the input width of "
        "fc.weight.",
        why="The server would start and die in its first warm-up call.",
        fix="Set as many ids as the message says.",
        example="two ids for a head whose fc.weight takes 3 x 2880 inputs",
    ),
    Rule(
        id=RuleId.VOCABULARY_MAP_FORM,
        title="d2t or t2d has another type or shape",
        what="d2t must be integers, one for each draft id; t2d booleans, one for each target id.",
        why="Read otherwise it maps to other tokens.",
        fix="Export the head again with its vocabulary map, or take another head.",
        example="d2t stored as float32",
    ),
    Rule(
        id=RuleId.VOCABULARY_MAP_RANGE,
        title="d2t leads outside the vocabulary, or to one id twice",
        what="d2t holds offsets: target id = draft id + d2t. A result is out of range or double.",
        why="Stored as absolute ids by mistake, every proposal would be another token.",
        fix="Export the head again with its vocabulary map, or take another head.",
        example="d2t that holds target ids in place of offsets",
    ),
    Rule(
        id=RuleId.VOCABULARY_MAPS_DISAGREE,
        title="d2t and t2d name different tokens",
        what="The ids that d2t leads to are not those that t2d marks.",
        why="One of them is of another training; acceptance collapses without an error.",
        fix="Export the head again with its vocabulary map, or take another head.",
        example="d2t all zero, with t2d set elsewhere",
    ),
    Rule(
        id=RuleId.DRAFT_STORED_QUANTIZED,
        title="The draft is stored quantized",
        what="The head's config.json has a quantization section.",
        why="It cannot be loaded, and is never quantized a second time.",
        fix="Set speculation.draft.path to the unquantized head.",
        example="a head with quantization_config in its config.json",
    ),
    Rule(
        id=RuleId.DRAFT_CANNOT_INHERIT,
        title="The draft cannot inherit a stored scheme",
        what="quantization.draft is inherit, and the target's scheme is how its checkpoint is "
        "stored.",
        why="The head has no weights of that form; engines look for them and fail, or load it "
        "plain in silence.",
        fix="Set quantization.draft=none.",
        example="quantization=compressed_tensors_int4 quantization.draft=inherit",
    ),
    Rule(
        id=RuleId.DRAFT_ODD_GROUPS,
        title="The groups do not divide the draft's layers",
        what="A layer of the head has a number of inputs that is no multiple of the group.",
        why="The last group would be cut off.",
        fix="Set quantization.draft=none.",
        example="a head with intermediate_size 100 and quantization.draft=int4",
    ),
    Rule(
        id=RuleId.BUNDLED_DRAFT,
        title="The bundled draft beside another target",
        what="model.path was changed, and model.draft_path still names the head of the bundled "
        "pair.",
        why="A head is trained for one target.",
        fix="Set model.draft_path to the head of this target, or turn speculation off.",
        example="+experiment=topk1_v2 model.path=FOLDER without model.draft_path",
    ),
    Rule(
        id=RuleId.AUX_LAYERS_GUESSED,
        title="The auxiliary layers are a guess",
        severity="warning",
        what="Neither the configuration nor the head's config.json names them: 2, n/2 and n-3 are "
        "taken, as most heads are trained.",
        why="A wrong guess costs most of the acceptance, and nothing fails.",
        fix="Pin speculation.draft.aux_layer_ids and aux_layer_convention.",
        example="a head whose config.json lacks eagle_aux_hidden_state_layer_ids",
    ),
)
