"""Depth by load as a small plot of characters."""

from collections.abc import Iterator, Sequence

from specserve.review.depths import Depth, LoadDepths

COLUMNS = 64
_DIGITS = "·123456789abcdefg"


def depth_plot(before: LoadDepths | None, after: LoadDepths | None) -> list[str]:
    """A line for each side, two where rising and falling load differ; one column for each load.

    More loads than columns are spaced by their logarithm.
    """
    sides = [("before", before), ("after", after)]
    longest = max((len(side.depths) for _, side in sides if side), default=0)
    if longest == 0:
        return []
    loads = _loads(longest)
    lanes = [lane for name, side in sides if side for lane in _lanes(name, side.depths, loads)]
    width = max(len("running decodes"), *(len(name) for name, _ in lanes))
    begin, end = str(loads[0]), str(loads[-1])
    scale = "" if len(loads) == longest else "  (logarithmic)"
    axis = f"{begin}{end:>{len(loads) - len(begin)}}" if len(loads) > 1 else begin
    return [
        f"{'running decodes':{width}}  {axis}{scale}",
        *(f"{name:{width}}  {marks}" for name, marks in lanes),
        f"{'':{width}}  digit: num_steps, ·: plain, blank: not admitted",
    ]


def _loads(longest: int) -> list[int]:
    if longest <= COLUMNS:
        return list(range(1, longest + 1))
    return [round(longest ** (column / (COLUMNS - 1))) for column in range(COLUMNS)]


def _lanes(name: str, depths: Sequence[Depth], loads: Sequence[int]) -> Iterator[tuple[str, str]]:
    shown = [depths[load - 1] if load <= len(depths) else None for load in loads]
    rising = "".join(_DIGITS[depth.rising] if depth else " " for depth in shown).rstrip()
    falling = "".join(_DIGITS[depth.falling] if depth else " " for depth in shown).rstrip()
    if rising == falling:
        yield name, rising
    else:
        yield f"{name}, rising", rising
        yield f"{name}, falling", falling
