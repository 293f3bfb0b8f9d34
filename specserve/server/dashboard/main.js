// The page: asks the server for what is new, shows it, and sends changes of the policy.

import { Refused, changePolicy, forgetKey, hasKey, readData, readForm, rememberKey } from "./api.js";
import { drawPhases, drawPositions } from "./build.js";
import { Charts } from "./charts.js";
import { byId, html, setText } from "./dom.js";
import { PolicyForm } from "./policy_form.js";
import { recent } from "./series.js";
import { ago, clock, eventText, figure, percent } from "./words.js";

const MOST_SAMPLES = 900;
const MOST_EVENTS = 200;
const SPANS = [[60, "1 min"], [300, "5 min"], [900, "15 min"]];

const charts = new Charts(byId("charts"));
let form = null; // made once the server has told the schema
let seen = null; // the version of the policy that the form was filled with
let span = 300;
let run = forgotten();

function forgotten() {
  return { created: null, last: 0, samples: [], events: [], told: -1 };
}

let isFollowing = false;

async function follow() {
  if (isFollowing) return;
  isFollowing = true;
  for (let wait = await look(); wait !== null; wait = await look()) {
    await new Promise((resolve) => setTimeout(resolve, wait));
  }
  isFollowing = false; // until somebody gives the key
}

/** Ask once; the milliseconds until the next time. */
async function look() {
  try {
    const data = await readData(run.last);
    if (run.created !== null && run.created !== data.run.created) {
      run = forgotten(); // another run than before: all that was known is void
      return 0;
    }
    form ??= makeForm(await readForm());
    take(data);
    byId("gate").hidden = true;
    byId("board").hidden = false;
    return 1000 * data.run.watch_seconds;
  } catch (error) {
    if (error instanceof Refused && error.status === 401) return askForKey();
    setStatus("unreachable", error.message);
    return 2000;
  }
}

function take(data) {
  const isNew = (entry) => entry.number > run.last; // two answers may cross
  run.samples = [...run.samples, ...data.samples.filter(isNew)].slice(-MOST_SAMPLES);
  run.events = [...run.events, ...data.events.filter(isNew)].slice(-MOST_EVENTS);
  run.created = data.run.created;
  run.last = Math.max(run.last, data.last_number);
  setStatus(data.status, data.status_detail);
  setText(byId("run"), `${data.run.model} · ${data.run.engine} on ${data.run.device} · ${data.run.scheduler} scheduler`);
  document.title = `${data.run.model} · specserve`;
  charts.show({ samples: run.samples, events: run.events, span, numSteps: data.run.num_steps });
  drawPhases(byId("phases"), data.phases);
  drawPositions(byId("positions"), data.stats);
  showNow(data);
  showPolicy(data.policy, data.status);
  showEvents();
}

function setStatus(status, detail) {
  byId("status").dataset.status = status;
  setText(byId("status-word"), status);
  setText(byId("status-detail"), detail);
}

function showNow({ policy, run: about, status, status_detail: detail }) {
  const last = run.samples.at(-1), now = recent(run.samples, 5), minute = recent(run.samples, 60);
  const word = !policy ? status : policy.num_steps ? `Speculating, ${policy.num_steps} step${policy.num_steps === 1 ? "" : "s"}` : "Plain decoding";
  setText(byId("now-word"), word[0].toUpperCase() + word.slice(1));
  byId("now-word").dataset.mode = policy?.mode ?? "";
  setText(byId("now-reason"), policy ? `${policy.reason}. Since ${ago(policy.since_seconds)}, ${figure(policy.switches)} switch${policy.switches === 1 ? "" : "es"} so far.` : detail);
  const figures = [
    ["tokens/s", figure(now?.tokensPerSecond), ""],
    ["acceptance length, last minute", figure(minute?.acceptanceLength), ""],
    ["drafts accepted, last minute", percent(minute?.acceptanceRate), ""],
    ["running decodes", figure(last?.running_decodes), ` of ${about.max_running_requests}`],
    ["queued", figure(last?.queued), ""],
  ];
  byId("figures").replaceChildren(...figures.map(([name, value, unit]) =>
    html("div", {}, html("dt", {}, name), html("dd", {}, value, html("small", {}, unit)))));
}

function showPolicy(policy, status) {
  byId("policy").hidden = !policy;
  if (!policy) return;
  const isReady = status === "ready";
  for (const to of ["on", "off"]) byId(`pin-${to}`).setAttribute("aria-pressed", String(policy.pinned === to));
  for (const id of ["pin-on", "pin-off", "revert"]) byId(id).disabled = !isReady;
  byId("pinned").hidden = !policy.pinned;
  setText(byId("pinned"), `pinned ${policy.pinned ?? ""}`);
  if (seen === policy.version) return;
  if (!form.isEdited) {
    form.show(policy.policy);
    seen = policy.version;
  } else {
    form.say("The policy has changed meanwhile: discard the edits to see it.");
  }
}

function showEvents() {
  const newest = run.events.at(-1)?.number ?? 0;
  if (newest === run.told) return;
  run.told = newest;
  const rows = run.events.toReversed().map((event) =>
    html("tr", { class: /^warning\.|\.(failed|fatal|hung|died)$/.test(event.kind) ? "warning" : null },
      html("td", {}, clock(event.time)), html("td", {}, event.kind), html("td", {}, eventText(event))));
  byId("events").replaceChildren(...(rows.length ? rows : [html("tr", {}, html("td", { colspan: "3" }, "None so far."))]));
}

function makeForm(description) {
  return new PolicyForm(byId("policy-form"), description, {
    submit: (policy) => change(policy, seen),
    reload: () => {
      seen = null;
      form.setEdited(false);
      look();
    },
  });
}

/** Send a change and show what came of it. */
async function change(asked, version) {
  form.say("");
  try {
    const state = await changePolicy(asked, version);
    seen = state.version;
    form.show(state.policy);
    form.say("In force.");
  } catch (error) {
    if (error instanceof Refused && error.status === 401) askForKey();
    else form.showProblems(error.problems ?? [], error.message);
    return;
  }
  await look();
}

/** Show the gate in place of the board. */
function askForKey() {
  if (hasKey()) setText(byId("gate-problem"), "The server does not know this key.");
  forgetKey();
  setStatus("locked", "");
  byId("board").hidden = true;
  byId("gate").hidden = false;
  byId("key").focus();
  return null;
}

byId("gate").addEventListener("submit", (event) => {
  event.preventDefault();
  rememberKey(byId("key").value);
  byId("key").value = "";
  setText(byId("gate-problem"), "");
  follow();
});

for (const to of ["on", "off"]) byId(`pin-${to}`).addEventListener("click", () => change({ pin: to }));
byId("revert").addEventListener("click", () => change({ revert: true }));

byId("ranges").append(...SPANS.map(([seconds, name]) =>
  html("button", { type: "button", "aria-pressed": String(seconds === span), onclick: (event) => {
    span = seconds;
    for (const button of byId("ranges").children) button.setAttribute("aria-pressed", String(button === event.target));
    if (charts.shown) charts.show({ ...charts.shown, span });
  } }, name)));

follow();
