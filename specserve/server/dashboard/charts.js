// The stacked charts over one time axis, with a cursor that pointer and arrow keys move.

import { html, svg } from "./dom.js";
import { nearest, points, roundUp, stretches } from "./series.js";
import { clock, depth, figure } from "./words.js";

const LEFT = 40;
const HEIGHT = 92;
const SHORTEST = 30; // seconds that are shown at least, of a run that has just begun
const SPLIT = 8; // a gap between points of more than so many seconds is a gap in the line

const CHARTS = [
  { title: "Draft steps", unit: "0 is plain decoding", draw: drawDepth },
  {
    title: "Requests", unit: "", least: 2,
    curves: [{ of: (point) => point.running_decodes, name: "running decodes", area: true }, { of: (point) => point.queued, name: "queued", second: true }],
  },
  { title: "Output", unit: "tokens/s", least: 10, curves: [{ of: (point) => point.tokensPerSecond, area: true }] },
  {
    title: "Acceptance length", unit: "tokens per request and verify round", from: 1, most: (numSteps) => numSteps + 1,
    curves: [{ of: (point) => point.acceptanceLength }],
  },
];

export class Charts {
  constructor(place) {
    this.place = place;
    this.told = html("p", { class: "told", "aria-live": "polite" });
    this.surface = html("div", {
      class: "surface", tabindex: "0", role: "group",
      "aria-label": "Charts over time. Left and right arrow keys move through the samples.",
      onpointermove: (event) => this.pointAt(event),
      onpointerleave: () => this.setCursor(null),
      onkeydown: (event) => this.step(event),
      onblur: () => this.setCursor(null),
    });
    this.empty = html("p", { class: "empty" }, "No samples yet: they come once the worker is up.");
    place.append(this.empty, this.surface, this.told);
    this.cursor = null;
    new ResizeObserver(() => this.draw()).observe(place);
  }

  /** Show the last `span` seconds of a run whose deepest round is `numSteps`. */
  show({ samples, events, span, numSteps }) {
    this.shown = { samples, events, span, numSteps };
    this.draw();
  }

  draw() {
    const width = this.place.clientWidth - LEFT;
    if (!this.shown || width <= 0) return;
    const { samples, events, span, numSteps } = this.shown;
    this.empty.hidden = samples.length > 1;
    this.surface.hidden = this.told.hidden = samples.length < 2;
    if (samples.length < 2) return;
    const until = samples.at(-1).time;
    const from = Math.max(until - span, Math.min(samples[0].time, until - SHORTEST));
    const x = (time) => LEFT + (width * (time - from)) / (until - from);
    const view = {
      x, width, from, until, numSteps,
      points: points(samples, from, Math.max(60, Math.floor(width / 2))),
      stretches: stretches(samples, events, until).filter((each) => each.to > from),
      changes: events.filter((each) => each.kind === "policy.replaced" && each.time >= from && each.time <= until),
    };
    this.view = view;
    this.surface.replaceChildren(...CHARTS.map((chart) => drawn(chart, view)), drawAxis(view));
    this.setCursor(this.cursor);
  }

  pointAt(event) {
    if (!this.view) return;
    const { from, until, width } = this.view;
    const share = (event.clientX - this.surface.getBoundingClientRect().left - LEFT) / width;
    this.setCursor(from + Math.min(1, Math.max(0, share)) * (until - from));
  }

  step(event) {
    const direction = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (event.key === "Escape") this.setCursor(null);
    if (!direction || !this.view) return;
    event.preventDefault();
    const all = this.view.points;
    const here = this.cursor === null ? all.length : all.indexOf(nearest(all, this.cursor));
    this.setCursor(all[Math.min(all.length - 1, Math.max(0, here + direction))]?.time ?? null);
  }

  setCursor(time) {
    this.cursor = time;
    for (const line of this.surface.querySelectorAll(".cursor")) line.remove();
    const point = time === null ? null : nearest(this.view.points, time);
    if (!point) {
      this.told.replaceChildren("Point at a chart, or use the arrow keys, to read its values.");
      return;
    }
    const at = Math.round(this.view.x(point.time)) + 0.5;
    for (const chart of this.surface.querySelectorAll("svg.plot")) {
      chart.append(svg("line", { class: "cursor", x1: at, x2: at, y1: 0, y2: HEIGHT }));
    }
    const stretch = this.view.stretches.findLast((each) => each.from <= point.time);
    this.told.replaceChildren(
      html("b", {}, clock(point.time)),
      ` · ${depth(point.num_steps)} · ${point.running_decodes} running decodes, ${point.queued} queued · ` +
        `${figure(point.tokensPerSecond)} tokens/s · acceptance length ${figure(point.acceptanceLength)}` +
        (stretch?.reason ? ` · since ${clock(stretch.from)}: ${stretch.reason}` : ""));
  }
}

function drawn(chart, view) {
  const plot = svg("svg", { class: "plot", height: HEIGHT, viewBox: `0 0 ${LEFT + view.width} ${HEIGHT}`, "aria-hidden": "true" });
  plot.append(...(chart.draw ? chart.draw(view) : drawCurves(chart, view)));
  for (const change of view.changes) {
    const at = view.x(change.time);
    plot.append(svg("line", { class: "mark", x1: at, x2: at, y1: 0, y2: HEIGHT }, svg("title", {}, "policy changed")));
  }
  const named = (chart.curves ?? []).filter((curve) => curve.name);
  const legend = named.flatMap((curve) => [html("i", { class: curve.second ? "i-second" : "i-accent" }), curve.name]);
  return html("div", { class: "chart" },
    html("div", { class: "title" }, html("b", {}, chart.title), html("span", { class: "legend" }, chart.unit, ...legend)), plot);
}

function drawGrid(low, high, width, ticks) {
  const y = (value) => HEIGHT - 1 - ((HEIGHT - 8) * (value - low)) / (high - low);
  return [y, ticks.flatMap((value) => [
    svg("line", { class: "grid", x1: LEFT, x2: LEFT + width, y1: Math.round(y(value)) + 0.5, y2: Math.round(y(value)) + 0.5 }),
    svg("text", { x: LEFT - 8, y: y(value) + 4, "text-anchor": "end" }, String(Number(value.toPrecision(3)))),
  ])];
}

function drawDepth(view) {
  const most = Math.max(1, view.numSteps, ...view.stretches.map((each) => each.depth));
  const [y, grid] = drawGrid(0, most, view.width, [0, most]);
  const rects = view.stretches.map(({ from, to, depth: steps, reason }) => {
    const left = Math.max(LEFT, view.x(from));
    return svg("rect", {
      x: left, width: Math.max(1, view.x(to) - left), y: steps ? y(steps) : y(0) - 5, height: steps ? y(0) - y(steps) : 5,
      fill: steps ? `color-mix(in oklab, var(--depth-high) ${Math.round((100 * steps) / most)}%, var(--depth-low))` : "var(--depth-0)",
    }, svg("title", {}, `${depth(steps)}${reason ? `: ${reason}` : ""}`));
  });
  return [...grid, ...rects];
}

function drawCurves({ curves, from = 0, least, most }, view) {
  const values = curves.flatMap((curve) => view.points.map(curve.of)).filter((value) => value !== null);
  const high = most ? Math.max(from + 1, most(view.numSteps)) : roundUp(Math.max(least, ...values));
  const [y, grid] = drawGrid(from, high, view.width, [from, (from + high) / 2, high]);
  return [...grid, ...curves.flatMap((curve) => runs(view.points, curve.of).flatMap((run) => {
    const line = run.map(([time, value]) => `${Math.max(LEFT, view.x(time)).toFixed(1)},${y(value).toFixed(1)}`);
    const start = line[0].split(",")[0], end = line.at(-1).split(",")[0];
    const path = svg("path", { class: curve.second ? "curve second" : "curve", d: `M${line.join("L")}${run.length === 1 ? "h0.1" : ""}`, "stroke-linecap": "round" });
    return curve.area ? [svg("path", { class: "area", d: `M${start},${y(from)}L${line.join("L")}L${end},${y(from)}Z` }), path] : [path];
  }))];
}

/** Stretches of points without a gap. */
function runs(all, of) {
  const found = [];
  let open = null;
  for (const point of all) {
    const value = of(point);
    if (value === null) { open = null; continue; }
    if (open && point.time - open.at(-1)[0] > Math.max(SPLIT, 3 * point.seconds)) open = null;
    if (!open) found.push((open = []));
    open.push([point.time, value]);
  }
  return found;
}

function drawAxis({ x, from, until, width }) {
  const each = [5, 10, 15, 30, 60, 120, 180, 300].find((seconds) => (width * seconds) / (until - from) >= 76) ?? 300;
  const axis = svg("svg", { class: "axis", height: 20, width: LEFT + width, "aria-hidden": "true" });
  for (let time = Math.ceil(from / each) * each; time <= until; time += each) {
    if (x(time) > LEFT + 22 && x(time) < LEFT + width - 22) axis.append(svg("text", { x: x(time), y: 14, "text-anchor": "middle" }, clock(time)));
  }
  return axis;
}
