// The phases of the start, and the acceptance by position.

import { html, svg } from "./dom.js";
import { figure, percent, seconds } from "./words.js";

const CLASS = { done: "did", start: "runs", failed: "failed", undo_failed: "failed" };

/** One bar for each phase, on a common time axis. */
export function drawPhases(place, phases) {
  if (!phases.length) {
    place.replaceChildren(html("p", { class: "empty" }, "No phase has started."));
    return;
  }
  const began = Math.min(...phases.map((each) => each.began));
  const now = Date.now() / 1000;
  const ended = Math.max(...phases.map((each) => (each.seconds === null ? now : each.began + each.seconds)));
  const share = (time) => (100 * (time - began)) / Math.max(ended - began, 0.001);
  const rows = phases.flatMap((phase) => {
    const end = phase.seconds === null ? now : phase.began + phase.seconds;
    const length = phase.event === "skipped" ? 0 : Math.max(0.6, share(end) - share(phase.began));
    const bar = svg("svg", { class: "bar", preserveAspectRatio: "none", viewBox: "0 0 100 12", "aria-hidden": "true" },
      svg("rect", { class: "track", x: 0, y: 5.5, width: 100, height: 1 }),
      svg("rect", { class: CLASS[phase.event] ?? "track", x: Math.min(share(phase.began), 100 - length), width: length, y: 0, height: 12 }));
    const why = phase.details.cause ?? (phase.event === "skipped" ? null : undefined);
    return [
      html("span", { title: phase.details.reason }, phase.phase), bar, html("span", { class: "lasted" }, lasted(phase)),
      ...(why ? [html("span", { class: "why" }, why)] : []),
    ];
  });
  const total = html("p", { class: "hint" }, `${seconds(ended - began)} in all`);
  place.replaceChildren(html("div", { class: "phases" }, ...rows), total);
}

function lasted({ event, seconds: value }) {
  if (event === "start") return "runs";
  if (event === "done") return seconds(value);
  return event === "skipped" ? "skipped" : event.replace("_", " ");
}

/** How often the draft token at each position was kept, of all verifications since start. */
export function drawPositions(place, stats) {
  if (!stats?.verify_rounds) {
    place.replaceChildren(html("p", { class: "empty" }, "Nothing was verified yet."));
    return;
  }
  const rows = stats.accepted_by_position.map((accepted, index) => {
    const share = accepted / stats.verify_rounds;
    const bar = svg("svg", { viewBox: "0 0 100 12", preserveAspectRatio: "none", "aria-hidden": "true" },
      svg("rect", { x: 0, y: 0, width: 100, height: 12, fill: "var(--line)" }),
      svg("rect", { x: 0, y: 0, width: 100 * share, height: 12, fill: "var(--accent)" }));
    return html("tr", {}, html("th", { scope: "row" }, String(index + 1)), html("td", { class: "wide" }, bar), html("td", {}, percent(share)));
  });
  const wasted = stats.drafted - stats.accepted;
  place.replaceChildren(
    html("table", {}, html("thead", {}, html("tr", {},
      html("th", { scope: "col" }, "Token"), html("th", { scope: "col" }, ""), html("th", { scope: "col" }, "Accepted"))),
    html("tbody", {}, ...rows)),
    html("p", { class: "hint" },
      `Of ${figure(stats.verify_rounds)} verifications since start. ${figure(stats.drafted)} tokens drafted, ` +
      `${figure(stats.accepted)} accepted, ${figure(wasted)} wasted (${percent(wasted / stats.drafted)}).`));
}
