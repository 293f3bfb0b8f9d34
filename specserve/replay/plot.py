"""A comparison as a figure: load, depth and tokens per second over the same time."""

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from specserve.errors import Problem
from specserve.replay.comparison import Comparison
from specserve.replay.costs import Costs
from specserve.replay.timeline import Moment, moments
from specserve.rule_ids import RuleId

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SUFFIXES = (".svg", ".png")


class _Pen(NamedTuple):
    name: str
    color: str
    width: float


def plot_problems(path: Path) -> list[Problem]:
    """Why no figure can be drawn to `path`."""
    problems = []
    if path.suffix not in SUFFIXES:
        problems.append(
            Problem(
                rule=RuleId.WRONG_FLAG,
                key="--plot",
                value=str(path),
                expected=f"a name that ends in {' or '.join(SUFFIXES)}",
                fix=f"use --plot {path.with_suffix('.svg')}",
            )
        )
    if find_spec("matplotlib") is None:
        problems.append(
            Problem(
                rule=RuleId.NO_PLOT,
                key="--plot",
                value=str(path),
                expected="matplotlib, which is not installed",
                fix="run `pip install 'specserve[plot]'`, or leave out --plot",
            )
        )
    return problems


def save_plot(comparison: Comparison, costs: Costs, path: Path) -> None:
    """Draw to `path`; the same comparison gives the same file. Raises OSError."""
    from matplotlib import rc_context  # heavy, and of no use without --plot
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 7), layout="constrained")
    load, depth, rate = figure.subplots(3, sharex=True)
    _draw_load(load, comparison)
    oracle = _Pen("oracle", "lightgrey", 4.0)
    pens = [_Pen(one.candidate.name, f"C{i}", 1.2) for i, one in enumerate(comparison.policies)]
    outcomes = [comparison.oracle, *(one.outcome for one in comparison.policies)]
    for pen, outcome in zip([oracle, *pens], outcomes, strict=True):
        _draw_course(depth, rate, pen, list(moments(comparison.trace, outcome, costs)), comparison)
    load.set_title(f"{comparison.trace.source}; calibration {comparison.calibration_path}")
    load.set_ylabel("running decodes")
    depth.set_ylabel("num_steps")
    depth.set_yticks(list(comparison.statics))
    rate.set_ylabel("expected tokens/s")
    rate.set_xlabel("seconds")
    figure.legend(*rate.get_legend_handles_labels(), loc="outside lower center", ncols=4)
    with rc_context({"svg.hashsalt": "specserve"}):
        figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)


def _draw_load(axes: "Axes", comparison: Comparison) -> None:
    spans = comparison.trace.spans
    times = [*(span.begin for span in spans), spans[-1].end]
    counts = [span.running_decodes for span in spans]
    axes.stairs(counts, times, color="black", linewidth=1, fill=False, baseline=None)
    axes.set_ylim(bottom=0)


def _draw_course(
    depth: "Axes", rate: "Axes", pen: _Pen, course: Sequence[Moment], comparison: Comparison
) -> None:
    """Two steps: the depth (a gap while idle) and its rate."""
    times = [*(moment.begin for moment in course), comparison.trace.seconds]
    depths = [float("nan") if m.num_steps is None else m.num_steps for m in course]
    rates = [moment.tokens_per_second for moment in course]
    for axes, values in ((depth, depths), (rate, rates)):
        axes.stairs(
            values, times, baseline=None, color=pen.color, linewidth=pen.width, label=pen.name
        )
