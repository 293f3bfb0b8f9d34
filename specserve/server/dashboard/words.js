// Figures and events as people read them.

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });

/** Three digits or so; a dash for what is not known. */
export function figure(value) {
  if (value === null || value === undefined) return "–";
  if (Math.abs(value) >= 100 || Number.isInteger(value)) return whole.format(value);
  return value.toFixed(Math.abs(value) >= 10 ? 1 : 2);
}

export const percent = (share) => (share === null || share === undefined ? "–" : `${Math.round(100 * share)} %`);

export function seconds(value) {
  if (value < 1) return `${Math.round(1000 * value)} ms`;
  return value < 100 ? `${value.toFixed(1)} s` : `${Math.floor(value / 60)} min ${Math.round(value % 60)} s`;
}

export function ago(value) {
  if (value < 60) return `${Math.floor(value)} s`;
  if (value < 3600) return `${Math.floor(value / 60)} min`;
  return value < 86400 ? `${Math.floor(value / 3600)} h ${Math.floor((value % 3600) / 60)} min` : `${Math.floor(value / 86400)} d`;
}

export const clock = (time) => new Date(1000 * time).toLocaleTimeString("en-GB");

export const depth = (numSteps) => (numSteps ? `${numSteps} draft step${numSteps === 1 ? "" : "s"}` : "plain");

/** What an event says, in a line. */
export function eventText({ kind, fields }) {
  switch (kind) {
    case "policy.switch": return switchText(fields);
    case "policy.replaced": return replacedText(fields);
    default: return shortened(fields.text ?? Object.entries(fields).map(([name, value]) => `${name}: ${value}`).join(" · "));
  }
}

function switchText({ from_num_steps, to_num_steps, reason, left_out }) {
  const hidden = left_out ? ` (${whole.format(left_out)} more before it, too many to record)` : "";
  return `${depth(from_num_steps)} → ${depth(to_num_steps)}: ${reason}${hidden}`;
}

function replacedText({ before, after, pinned, client, asked }) {
  const by = client ? `, by ${client}` : "";
  if (pinned) return `pinned ${pinned}${by}`;
  if (asked?.revert) return `back to the run’s own policy, ${after.kind}${by}`;
  if (before.kind !== after.kind) return `${before.kind} → ${after.kind}${by}`;
  const changed = Object.keys(after).filter((name) => JSON.stringify(after[name]) !== JSON.stringify(before[name]));
  const told = changed.map((name) => `${name} ${plain(before[name])} → ${plain(after[name])}`);
  return `${after.kind}: ${told.join(", ") || "set anew, nothing differs"}${by}`;
}

const plain = (value) => (typeof value === "object" ? JSON.stringify(value) : String(value));

const shortened = (text) => (text.length > 400 ? `${text.slice(0, 400)} …` : text);
