"""Kind 3: sections that must go together, and doubts about a configuration as a whole."""

from specserve.rule_ids import RuleId
from specserve.rulebook.rule import Rule

RULES = (
    Rule(
        id=RuleId.CHAIN_LENGTH,
        title="A chain verifies num_steps + 1 tokens",
        what="With topk=1 the draft is a single chain, and num_draft_tokens is not its length with "
        "the root.",
        why="Fewer throw drafted tokens away; more cannot be filled. Engines rewrite the number "
        "silently.",
        fix="Set num_draft_tokens to num_steps + 1 (auto does), or num_steps to fit.",
        example="specserve check +experiment=topk1_v2 speculation.num_draft_tokens=3",
    ),
    Rule(
        id=RuleId.TREE_SIZE,
        title="The tree is smaller than num_draft_tokens",
        what="A tree offers 1 + topk + (num_steps - 1) * topk^2 tokens at most.",
        why="The rest of the verified tokens would be padding.",
        fix="Set num_draft_tokens to what the message says, or lower.",
        example="specserve check +experiment=topk4_v1 speculation.num_draft_tokens=38",
    ),
    Rule(
        id=RuleId.POLICY_WITHOUT_DRAFT,
        title="A policy that speculates without anything to draft with",
        what="speculation is off, and the policy is not.",
        why="The policy could never act; a threshold that is accepted and never read is worse than "
        "none.",
        fix="Choose policy=off, or an option of speculation.",
        example="specserve check policy=always",
    ),
    Rule(
        id=RuleId.QUANTIZED_DRAFT_WITHOUT_DRAFT,
        title="A scheme for a draft that is not loaded",
        what="quantization.draft names a scheme, and speculation is off.",
        why="It would have no effect.",
        fix="Set quantization.draft=none, or choose an option of speculation.",
        example="specserve check quantization.draft=int8",
    ),
    Rule(
        id=RuleId.ATTENTION_OF_ANOTHER_ENGINE,
        title="The engine has no such attention back-end",
        what="engine=torch computes attention by sdpa, engine=sglang by kernels of its own.",
        why="The engine would fail while it is built, after the weights are loaded.",
        fix="Choose attention=auto, or the other engine.",
        example="specserve check attention=fa3",
    ),
    Rule(
        id=RuleId.ONE_DEVICE_OF_TORCH,
        title="engine=torch runs on one device",
        what="parallel asks for several GPUs or machines, and the embedded engine uses one.",
        why="The other devices would stay idle without a word.",
        fix="Set the key to 1, or choose engine=sglang.",
        example="specserve check parallel=tp2",
    ),
    Rule(
        id=RuleId.UNEVEN_NODES,
        title="The machines do not share the GPUs evenly",
        what="tensor_parallel is no multiple of num_nodes.",
        why="Every machine starts the same number of ranks; a remainder leaves one rank waiting "
        "for ever.",
        fix="Set tensor_parallel to a multiple of num_nodes.",
        example="specserve check engine=sglang parallel.num_nodes=2",
    ),
    Rule(
        id=RuleId.QUANTIZATION_OF_ANOTHER_ENGINE,
        title="The engine cannot read this quantization",
        what="engine=torch quantizes while loading; it does not read compressed-tensors.",
        why="The stored matrices would be taken for plain ones, or not be found.",
        fix="Choose quantization=int4, or engine=sglang.",
        example="specserve check quantization=compressed_tensors_int4",
    ),
    Rule(
        id=RuleId.GRAPH_SIZES_UNSORTED,
        title="Captured sizes are not increasing",
        what="cuda_graph.batch_sizes is empty, or not in increasing order without repeats.",
        why="A batch is padded to the next size of the list; out of order it would be padded too "
        "far.",
        fix="Set the sorted list that the message shows, or auto.",
        example="specserve check cuda_graph.batch_sizes=[4,2,2]",
    ),
    Rule(
        id=RuleId.KV_BUDGET_BELOW_CONTEXT,
        title="The KV budget is too small for one request",
        what="scheduler.max_kv_tokens is less than the tokens that one request may hold.",
        why="A request of full length could never be admitted, and would wait for ever.",
        fix="Raise max_kv_tokens, or lower model.context_length.",
        example="specserve check scheduler.max_kv_tokens=10 model.context_length=64",
    ),
    Rule(
        id=RuleId.DRAFT_NEVER_USED,
        title="A draft is loaded and stays unused",
        severity="warning",
        what="speculation names a draft, and the policy is off.",
        why="It takes memory. That is meant only if the policy is to be changed while the server "
        "runs.",
        fix="Choose speculation=off, or a policy that speculates.",
        example="specserve check speculation=eagle3_topk1",
    ),
    Rule(
        id=RuleId.OPEN_TO_THE_NETWORK,
        title="Whoever reaches the machine can use the server",
        severity="danger",
        what="server.host is no loopback address, and there is no server.api_key.",
        why="Requests cost money and show what the model was given; the policy can be changed as "
        "well.",
        fix="Set server.api_key=${oc.env:NAME}, or server.host=127.0.0.1 behind a proxy.",
        example="specserve check server.host=0.0.0.0",
    ),
    Rule(
        id=RuleId.GRAPH_SIZES_UNUSED,
        title="Graph sizes without graphs",
        severity="warning",
        what="cuda_graph.batch_sizes is set, and cuda_graph.kind is off.",
        why="The list has no effect.",
        fix="Choose cuda_graph=auto, or leave the sizes out.",
        example="specserve check cuda_graph=off cuda_graph.batch_sizes=[1]",
    ),
    Rule(
        id=RuleId.REMOTE_CODE,
        title="Code from the checkpoint runs here",
        severity="danger",
        what="model.trust_remote_code lets Python files of the checkpoint run.",
        why="They run with the rights of this user, and change with the next download.",
        fix="Set it to false where the model does not need it; else pin the revision and read the "
        "files.",
        example="specserve check model.trust_remote_code=true",
    ),
    Rule(
        id=RuleId.SECRET_IN_A_FILE,
        title="A secret is written in a file of the repository",
        severity="danger",
        what="`specserve review` finds server.api_key as plain text in a configuration that git "
        "holds.",
        why="Whoever may read the repository, or ever could, has the key.",
        fix="Write server.api_key=${oc.env:NAME} there, and give the server another key.",
        example="an experiment with `server: {api_key: hunter2}`",
    ),
)
