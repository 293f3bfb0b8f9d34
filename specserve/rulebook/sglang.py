"""Rules of engine=sglang and of the drafters that it alone has, of several kinds."""

from specserve.rule_ids import RuleId
from specserve.rulebook.rule import Rule

RULES = (
    Rule(
        id=RuleId.DRAFTER_OF_ANOTHER_ENGINE,
        title="The engine has no such drafter",
        what="engine=torch drafts with EAGLE-3 heads only; SGLang's DFlash needs a GPU.",
        why="The drafter would be looked for after the target is loaded.",
        fix="Choose the engine that has it, or speculation=off policy=off.",
        example="specserve check speculation=ngram policy=always",
    ),
    Rule(
        id=RuleId.POLICY_NOT_STEERABLE,
        title="The depth of this drafter cannot change while it runs",
        what="The policy switches, and SGLang changes the depth of chains of EAGLE's family only.",
        why="SGLang would draft at full depth whatever the policy says.",
        fix="Choose policy=always, or a chain.",
        example="specserve check engine=sglang speculation=eagle3_topk4 policy=batch_threshold",
    ),
    Rule(
        id=RuleId.TREE_WITHOUT_SUPPORT,
        title="A tree that the release or the back-end cannot verify",
        what="topk is above 1, and the overlap scheduler of this release, or the attention "
        "back-end over pages of more than one token, verifies chains only.",
        why="Only indices would be moved and not the cached keys and values: the results are "
        "wrong, or the worker dies in the middle of a batch.",
        fix="Change the one of the values that the message offers.",
        example="engine=sglang speculation=ngram attention=triton engine.page_size=16 on a GPU",
        versions=("TREE_WITH_OVERLAP", "TREE_OVER_PAGES", "NGRAM_OVER_PAGES"),
    ),
    Rule(
        id=RuleId.EXTRA_ARGUMENT,
        title="An extra argument that cannot be passed",
        what="engine.extra_args has a setting that specserve sets itself, that no release knows, "
        "or that SGLang drops.",
        why="Two sources of one setting: whichever wins, the other was believed.",
        fix="Set the key that the message names in its place, or leave it out.",
        example="engine=sglang +engine.extra_args.tp_size=2",
    ),
    Rule(
        id=RuleId.WOULD_BE_REWRITTEN,
        title="SGLang would replace this value",
        what="The release overwrites the value at start-up with another one.",
        why="What runs would differ from what was reviewed, with a line in a log at most.",
        fix="Set the value that SGLang takes, as the message says.",
        example="engine=sglang engine.device=cpu scheduler=overlap with speculation",
        versions=("OVERLAP_ON_A_CPU", "FP8_OF_FA3", "TOKENS_PER_REQUEST"),
    ),
    Rule(
        id=RuleId.NGRAM_BREADTH,
        title="The fewest continuations are more than the most",
        what="speculation.min_breadth is larger than speculation.max_breadth.",
        why="No breadth lies between the two.",
        fix="Set min_breadth to max_breadth or lower.",
        example="specserve check engine=sglang speculation=ngram policy=always "
        "speculation.min_breadth=100",
    ),
    Rule(
        id=RuleId.CHUNK_OVER_PAGES,
        title="A prefill chunk that is no multiple of the page",
        what="scheduler.prefill_chunk_tokens is no multiple of engine.page_size.",
        why="A chunk that ends inside a page cannot be cached.",
        fix="Set the multiple that the message names.",
        example="engine=sglang engine.page_size=48 with prefill_chunk_tokens=256",
    ),
    Rule(
        id=RuleId.NOT_STORED_SO,
        title="The checkpoint is not stored so",
        what="quantization describes how the weights are stored, and these are stored otherwise.",
        why="The engine would look for scales that are not there.",
        fix="Choose what the checkpoint is stored in, as the message says.",
        example="quantization=awq for a plain bfloat16 checkpoint",
    ),
    Rule(
        id=RuleId.NO_BUNDLED_LAYERS,
        title="The target brings no draft layers",
        what="speculation=mtp without a draft path takes the layers inside the target's "
        "checkpoint, and its config.json names none.",
        why="The target would be loaded a second time as its own draft.",
        fix="Set speculation.draft.path, or turn speculation off.",
        example="speculation=mtp for Llama 3.1",
    ),
    Rule(
        id=RuleId.DRAFT_OF_ANOTHER_METHOD,
        title="The draft was made for another method",
        what="The architecture of the draft belongs to another drafter than speculation.kind, or "
        "it is the target itself.",
        why="The method that is asked for stays: it is never replaced by what the files look like.",
        fix="Choose the drafter that the draft was made for, or another draft.",
        example="speculation=standalone with an EAGLE-3 head",
        versions=("EAGLE3_HEADS",),
    ),
    Rule(
        id=RuleId.AUX_LAYERS_READ_OTHERWISE,
        title="SGLang feeds the head with other layers",
        what="SGLang reads the auxiliary layers from eagle_config in the head's config.json, in "
        "its own convention, and that differs from the configuration.",
        why="An id too high or too low costs most of the acceptance, and nothing fails.",
        fix="Set the ids to auto, or change them in a copy of the head's config.json.",
        example="engine=sglang speculation.draft.aux_layer_ids=[1,2,3] for a head that names "
        "others",
        versions=("INPUT_IDS_TARGETS",),
    ),
    Rule(
        id=RuleId.DRAFT_OF_ANOTHER_VOCABULARY,
        title="The draft has another vocabulary",
        what="Its vocab_size differs from the target's.",
        why="Proposals are token ids of the target: another tokenizer's ids are other words.",
        fix="Take a draft of the target's family.",
        example="speculation=standalone with Qwen3 0.6B for Llama 3.1",
    ),
    Rule(
        id=RuleId.UNSUPPORTED_VERSION,
        title="A release of SGLang that specserve does not know",
        what="The installed release is not among those whose arguments were looked up.",
        why="Names and defaults change between releases; a wrong one is ignored in silence.",
        fix="Install a supported release, or set engine.allow_untested_version=true.",
        example="engine=sglang with SGLang 0.4.0",
    ),
    Rule(
        id=RuleId.ATTENTION_WITHOUT_KERNEL,
        title="The GPU has no kernel of this back-end",
        what="attention=fa3 is made for compute capability 8.x and 9.x.",
        why="It would fail in the first forward pass.",
        fix="Choose attention=flashinfer or attention=triton.",
        example="engine=sglang attention=fa3 on a GPU of compute capability 10.0",
    ),
    Rule(
        id=RuleId.NUMBERS_WITHOUT_HARDWARE,
        title="The GPU does not calculate in these numbers",
        what="The quantization needs a newer generation of GPUs.",
        why="It would be slow at best, and fail in the first forward pass otherwise.",
        fix="Choose another quantization, as the message says.",
        example="quantization=fp8 on a GPU of compute capability 7.5",
    ),
    Rule(
        id=RuleId.UNTESTED_VERSION,
        title="An untested release of SGLang",
        severity="warning",
        what="engine.allow_untested_version lets a release run whose arguments were not looked up.",
        why="Only the comparison of effective settings after the start would tell a difference.",
        fix="Install a supported release.",
        example="engine.allow_untested_version=true with SGLang 0.4.0",
    ),
    Rule(
        id=RuleId.GREEDY_ON_A_CPU,
        title="Sampling acts on the first token only",
        severity="danger",
        what="On a CPU SGLang verifies drafted tokens greedily.",
        why="temperature and top_p have no effect on the tokens that are accepted.",
        fix="Serve greedy requests only, or turn speculation off on a CPU.",
        example="engine=sglang engine.device=cpu with speculation",
    ),
)
