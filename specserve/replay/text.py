"""A comparison as text: the verdict, a table, the course of time, the switches."""

from collections.abc import Iterator, Sequence

from specserve.replay.comparison import Comparison, Replayed
from specserve.replay.outcome import Outcome
from specserve.replay.timeline import depths_at, span_at

_COLUMNS = 64
_MOST_SWITCHES = 5
_BARS = " ▁▂▃▄▅▆▇█"
_DIGITS = "·123456789abcdefg"


def report(comparison: Comparison) -> str:
    """The report for a terminal; lines of 100 columns but for names and reasons."""
    return "\n".join(
        [
            *_verdict(comparison),
            "",
            *_facts(comparison),
            "",
            *_table(comparison),
            "",
            *_course(comparison),
            *_switches(comparison),
        ]
    )


def _verdict(comparison: Comparison) -> Iterator[str]:
    best, depth = comparison.best, comparison.best_static
    gain = best.outcome.tokens_per_second / comparison.statics[depth].tokens_per_second - 1
    count = len(comparison.policies)
    among = f", the best of {count} policies," if count > 1 else ""
    yield (
        f"{best.candidate.name}{among} gets {_percent(comparison.of_oracle(best.outcome))} of the "
        f"oracle's tokens/s with {_count(best.outcome.switches, 'switch', 'switches')},"
    )
    yield (
        f"{_percent(abs(gain))} {'less' if gain < 0 else 'more'} than the best setting that never "
        f"changes ({_static(depth)})"
    )


def _facts(comparison: Comparison) -> Iterator[str]:
    trace, calibration = comparison.trace, comparison.calibration
    measured = calibration.provenance
    busy = [span for span in trace.spans if span.running_decodes]
    acceptance = sorted({span.acceptance for span in busy})
    yield f"  load          {trace.source}: {trace.seconds:g} s, up to {trace.peak} running decodes"
    if len(acceptance) == 1:
        yield f"  acceptance    {_chances(acceptance[0])} by position"
    else:
        low, high = acceptance[0], acceptance[-1]
        yield f"  acceptance    from {_chances(low)} to {_chances(high)} by position"
    yield (
        f"  calibration   {comparison.calibration_path}: {measured.device}, "
        f"engine={measured.engine}, {measured.target}, {measured.date}"
    )
    largest = calibration.batch_sizes[-1]
    beyond = sum(span.seconds for span in busy if span.running_decodes > largest)
    if beyond:
        share = _percent(beyond / sum(span.seconds for span in busy))
        yield f"  extrapolated  {share} of the time: above {largest}, the largest batch measured"
    runs = [one.candidate.config for one in comparison.policies]
    admitted = min(run.scheduler.max_running_requests for run in runs)
    if admitted < trace.peak:
        yield f"  admission     scheduler.max_running_requests={admitted} would let no more decode"
    yield "  not counted   what a switch costs: the draft's state, made good or lost (while_off)"


def _table(comparison: Comparison) -> Iterator[str]:
    rows = [(one.candidate.name, one.outcome) for one in comparison.policies]
    statics = [(_static(depth), outcome) for depth, outcome in comparison.statics.items()]
    oracle = ("oracle", comparison.oracle)
    width = max(len(name) for name, _ in [*rows, *statics, oracle])
    depths = list(comparison.statics)
    heads = "".join(f"{_head(depth):>9}" for depth in depths)
    yield f"  {'':{width}}  tokens/s  of oracle  switches  time with{heads}"
    for name, outcome in [*rows, *statics, oracle]:
        shares = "".join(f"{_share(outcome, depth):>9}" for depth in depths)
        yield (
            f"  {name:{width}}  {outcome.tokens_per_second:8,.0f}  "
            f"{_percent(comparison.of_oracle(outcome)):>9}  {len(outcome.switches):8,}"
            f"           {shares}"
        )


def _course(comparison: Comparison) -> Iterator[str]:
    """One column for each moment: how many requests decode, and the depth of each policy."""
    trace = comparison.trace
    times = [trace.seconds * (column + 0.5) / _COLUMNS for column in range(_COLUMNS)]
    running = [span_at(trace, time).running_decodes for time in times]
    bars = "".join(_BARS[-(-count * (len(_BARS) - 1) // trace.peak)] for count in running)
    lanes = [(one.candidate.name, one.outcome) for one in comparison.policies]
    lanes.append(("oracle", comparison.oracle))
    width = max(len("running decodes"), *(len(name) for name, _ in lanes))
    yield f"  {'running decodes':{width}}  {bars}  up to {trace.peak}"
    for name, outcome in lanes:
        depths = depths_at(trace, outcome, times)
        yield f"  {name:{width}}  {''.join(map(_digit, depths))}"
    begin, end = "0 s", f"{trace.seconds:g} s"
    yield f"  {'':{width}}  {begin}{end:>{_COLUMNS - len(begin)}}  digit: num_steps, ·: plain"


def _switches(comparison: Comparison) -> Iterator[str]:
    for one in comparison.policies:
        if one.outcome.switches:
            yield ""
            yield from _switches_of(one)


def _switches_of(one: Replayed) -> Iterator[str]:
    switches = one.outcome.switches
    yield f"  {_count(switches, 'switch', 'switches')} of {one.candidate.name}"
    for before, after in switches[:_MOST_SWITCHES]:
        yield f"    {after.begin:9.3f} s  {before.num_steps} -> {after.num_steps}  {after.reason}"
    if len(switches) > _MOST_SWITCHES:
        yield f"    … {len(switches) - _MOST_SWITCHES:,} more: --json FILE has them all"


def _static(depth: int) -> str:
    return f"num_steps={depth}" if depth else "plain decoding"


def _head(depth: int) -> str:
    return f"{depth} steps" if depth > 1 else f"{depth} step" if depth else "plain"


def _share(outcome: Outcome, depth: int) -> str:
    share = outcome.by_depth.get(depth)
    return _percent(share.seconds / outcome.seconds) if share else "-"


def _digit(depth: int | None) -> str:
    return " " if depth is None else _DIGITS[depth]


def _percent(share: float) -> str:
    return f"{share:.1%}"


def _chances(acceptance: Sequence[float]) -> str:
    return ", ".join(f"{chance:.2f}" for chance in acceptance) or "none"


def _count(things: Sequence[object], one: str, several: str) -> str:
    return f"{len(things):,} {one if len(things) == 1 else several}"
