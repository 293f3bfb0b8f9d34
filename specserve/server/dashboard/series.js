// From samples of counters to what is drawn. Pure functions.

const COUNTERS = ["emitted", "drafted", "accepted", "verify_rounds"];

/** What was counted between two samples, and the rates that follow; null where nothing was. */
export function between(older, newer) {
  const grown = Object.fromEntries(COUNTERS.map((name) => [name, newer[name] - older[name]]));
  const seconds = newer.time - older.time;
  return {
    seconds,
    ...grown,
    tokensPerSecond: seconds > 0 ? grown.emitted / seconds : null,
    acceptanceLength: grown.verify_rounds ? 1 + grown.accepted / grown.verify_rounds : null,
    acceptanceRate: grown.drafted ? grown.accepted / grown.drafted : null,
  };
}

/** The rates over the last `seconds`; null before there are two samples. */
export function recent(samples, seconds) {
  if (samples.length < 2) return null;
  const newest = samples.at(-1);
  const older = samples.find((each) => each.time >= newest.time - seconds - 0.5);
  return between(older === newest ? samples.at(-2) : older, newest);
}

/** At most `most` points from time `from` on, each with the rates since the point before. */
export function points(samples, from, most) {
  const first = samples.findIndex((each) => each.time >= from);
  if (first < 0) return [];
  const shown = samples.slice(Math.max(first - 1, 0));
  const stride = Math.max(1, Math.ceil(shown.length / most));
  // Strides are counted by the samples' numbers, so that a point stays where it is while time goes on.
  const kept = shown.filter((each, index) =>
    stride === 1 || index === shown.length - 1 || Math.floor(each.number / stride) !== Math.floor(shown[index + 1].number / stride));
  return kept.slice(1).map((each, index) => ({ ...each, ...between(kept[index], each) }));
}

/** Stretches of one depth: [{from, to, depth, reason}]. Switches are exact, samples fill in. */
export function stretches(samples, events, until) {
  const seen = samples.map((each) => ({ time: each.time, depth: each.num_steps, reason: null }));
  for (const { kind, time, fields } of events) {
    if (kind === "policy.switch") seen.push({ time, depth: fields.to_num_steps, reason: fields.reason });
  }
  seen.sort((a, b) => a.time - b.time);
  const found = [];
  for (const { time, depth, reason } of seen) {
    const last = found.at(-1);
    if (last?.depth === depth) {
      last.reason ??= reason;
    } else {
      if (last) last.to = time;
      found.push({ from: time, to: until, depth, reason });
    }
  }
  return found;
}

/** The entry of a list sorted by `time` that lies nearest. */
export function nearest(entries, time) {
  return entries.reduce(
    (best, each) => (best && Math.abs(best.time - time) <= Math.abs(each.time - time) ? best : each), null);
}

/** A round number of at least `value`. */
export function roundUp(value) {
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 1.5, 2, 3, 4, 5, 6, 8, 10].map((factor) => factor * power).find((each) => each >= value * 0.9999);
}
