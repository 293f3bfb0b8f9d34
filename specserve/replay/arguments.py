"""The flags of `specserve policy replay`."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from specserve.flags import FlagParser
from specserve.replay.generators import SHAPES

PROG = "specserve policy replay"
_USAGE = """
  specserve policy replay --calibration FILE --trace FILE [FLAGS] [OVERRIDES]
  specserve policy replay --calibration FILE --generate SHAPE [FLAGS] [OVERRIDES]"""
_ABOUT = """\
What would these policies have done on this load, and what would it have earned? Every policy is
asked round by round, as an engine would ask it; rounds take what the calibration measured. They
are compared with the oracle (the best depth for every round, known in hindsight, switched to for
free) and with every setting that never changes. Starts no engine and needs no GPU.

for example

  specserve policy replay --calibration h200.json --generate ramp policy=cost_model
  specserve policy replay --calibration h200.json --trace monday.csv +experiment=topk1_v2
  specserve policy replay --calibration h200.json --generate sawtooth --low 36 --high 44 \\
      policy=batch_threshold policy.disable_above=40 policy.resume_at=30,38 --plot resume.svg

Several values compare several policies (policy=off,always,cost_model); a key that only some of
them have is for those. Where the overrides choose neither an experiment nor a speculation, the
one that was calibrated is taken, and a cost_model without a calibration decides by this one."""
_TRACE_FORMAT = """\
A trace is CSV with a header, or one JSON object a line. Each line holds until the next; the last
one says when the trace ends.

  time              seconds, increasing, from any origin
  running_decodes   requests in decode; 0 while the engine is idle
  acceptance        chance that a draft token is accepted, given that the one before it was;
                    in JSON also a list: the chance of each position
  acceptance_1 …    instead: the chance of each position, never growing
  acceptance_rate   instead, with num_steps: accepted / drafted tokens, at that depth

Without acceptance the calibration's is taken. While an acceptance cell is empty, the last one
holds.

Exit codes: 0 done, 2 a flag, a file or the configuration is wrong, 130 interrupted."""


def parse_arguments(argv: Sequence[str]) -> argparse.Namespace:
    """The flags, and the overrides as `overrides`. Raises ConfigError."""
    return _parser().parse_intermixed_args(argv)


def help_text() -> str:
    """What `--help` prints."""
    return _parser().format_help()


def _parser() -> FlagParser:
    parser = FlagParser(PROG, usage=_USAGE, about=_ABOUT)
    parser.epilog = _TRACE_FORMAT
    policies = parser.add_argument_group("the policies")
    policies.add_argument(
        "overrides", nargs="*", metavar="OVERRIDES", help="as for a run, with commas to compare"
    )
    load = parser.add_argument_group("the load")
    load.add_argument("--trace", type=Path, metavar="FILE", help="a recorded load, see below")
    load.add_argument(
        "--generate",
        choices=SHAPES,
        metavar="SHAPE",
        help="a made-up one: ramp (up and down), bursts, diurnal (two days' waves, scattered as "
        "independent requests are), sawtooth (up slowly, down at once)",
    )
    load.add_argument("--low", type=int, metavar="N", help="least running decodes (1)")
    load.add_argument(
        "--high",
        type=int,
        metavar="N",
        help="most running decodes (the largest calibrated batch; a sawtooth goes 20%% below and "
        "above the first threshold of the policies, else the break-even)",
    )
    load.add_argument("--seconds", type=float, metavar="S", help="simulated time (60)")
    load.add_argument(
        "--period",
        type=float,
        metavar="S",
        help="time until the shape repeats (ramp: once; diurnal: twice; bursts: 20, sawtooth: 40 "
        "times in --seconds)",
    )
    _add_outcome(parser)
    return parser


def _add_outcome(parser: FlagParser) -> None:
    rounds = parser.add_argument_group("the rounds")
    rounds.add_argument(
        "--calibration", type=Path, metavar="FILE", help="measured round times and acceptance"
    )
    rounds.add_argument(
        "--acceptance",
        metavar="P",
        help="true acceptance, instead of the trace's or the calibration's: the chance of each "
        "token given the one before (0.7), or of each position (0.7,0.45,0.3)",
    )
    rounds.add_argument(
        "--seed", type=int, default=0, metavar="N", help="of what policies see, and of the load (0)"
    )
    output = parser.add_argument_group("the report")
    output.add_argument("--plot", type=Path, metavar="FILE", help="a figure, .svg or .png")
    output.add_argument("--json", type=Path, metavar="FILE", help="everything, every switch too")
    output.add_argument(
        "--config-dir",
        "-cd",
        type=Path,
        action="append",
        default=[],
        metavar="DIR",
        help="your own configs, such as DIR/policy/mine.yaml for policy=mine",
    )
    output.add_argument("--help", "-h", action="store_true", help="this text")
