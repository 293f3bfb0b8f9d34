"""Write a target and an EAGLE-3 head whose output and acceptance are known beforehand.

    python scripts/construct_pair.py build/pair                                tiny
    python scripts/construct_pair.py build/pair --like path/to/model --p 0.7   of a model's shape

`--like` takes the shape from a config.json (a file, or a folder with one).
"""

import argparse
import json
from pathlib import Path
from typing import Any

from specserve.testing.constructed import construct_pair

SHAPE_KEYS = {
    "vocab_size": "vocab_size",
    "num_layers": "num_hidden_layers",
    "hidden_size": "hidden_size",
    "intermediate_size": "intermediate_size",
    "num_heads": "num_attention_heads",
    "num_kv_heads": "num_key_value_heads",
    "head_dim": "head_dim",
    "context_length": "max_position_embeddings",
}


def main() -> None:
    """Construct, and print what to expect."""
    arguments = _parser().parse_args()
    shape = {} if arguments.like is None else shape_of(arguments.like)
    given = {name: getattr(arguments, name) for name in (*SHAPE_KEYS, "draft_vocab_size")}
    shape |= {name: value for name, value in given.items() if value is not None}
    pair = construct_pair(
        arguments.folder,
        **shape,
        cycle=arguments.cycle,
        p=arguments.p,
        eos_position=arguments.eos_position,
        seed=arguments.seed,
        dtype=arguments.dtype,
    )
    print(f"target {pair.target_folder}\ndraft  {pair.draft_folder}")
    for num_steps in (1, 2, 3, 5, 8):
        length = pair.expected_acceptance_length(num_steps)
        print(f"num_steps={num_steps}: expected acceptance length {length:.3f}")
    prompt = [pair.cycle.first_id]
    print(f"after the prompt <{prompt[0]}>: {pair.expected_output(prompt, 12)} …")


def shape_of(path: Path) -> dict[str, Any]:
    """The arguments of `construct_pair` that a config.json answers."""
    config = json.loads((path / "config.json" if path.is_dir() else path).read_text())
    config = {"head_dim": config["hidden_size"] // config["num_attention_heads"], **config}
    return {name: config[key] for name, key in SHAPE_KEYS.items()}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--like", type=Path, help="config.json, or its folder")
    for name in (*SHAPE_KEYS, "draft_vocab_size"):
        parser.add_argument(f"--{name.replace('_', '-')}", type=int)
    parser.add_argument("--cycle", type=int, default=200, help="tokens that are ever emitted")
    parser.add_argument("--p", type=float, default=0.7, help="how often the draft is right")
    parser.add_argument("--eos-position", type=int, help="cycle position that ends a text")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--dtype", choices=("float32", "bfloat16", "float16"), default="float32")
    return parser


if __name__ == "__main__":
    main()
