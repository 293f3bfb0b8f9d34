// The form of a policy, made from the JSON schema of the configuration: a new kind or field of the
// server appears here by itself. Values are checked by the server alone, whose words are shown.

import { html } from "./dom.js";

export class PolicyForm {
  /** `submit(policy)` sends a whole policy; `reload()` asks for the one in force. */
  constructor(form, { schema, presets }, { submit, reload }) {
    this.form = form;
    this.schema = schema;
    this.presets = presets;
    this.isEdited = false;
    this.kind = html("select", { id: "policy.kind", "data-key": "policy.kind", onchange: () => this.chooseKind() },
      ...schema.oneOf.map((each) => this.resolved(each).properties.kind.const).map((kind) => html("option", { value: kind }, kind)));
    this.fields = html("div");
    this.general = html("p", { class: "problem", id: "policy-problem", role: "alert" });
    this.apply = html("button", { type: "submit" }, "Apply");
    this.discard = html("button", { type: "button", onclick: reload }, "Discard edits");
    this.said = html("span", { class: "said", role: "status" });
    form.append(
      html("div", { class: "field" }, html("label", { for: "policy.kind" }, "kind"), this.kind, html("p", { class: "hint", id: "kind-hint" }), problemOf("policy.kind")),
      this.fields, this.general, html("div", { class: "actions" }, this.apply, this.discard, this.said));
    form.addEventListener("input", () => this.setEdited(true));
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      submit(this.policy());
    });
  }

  /** Fill in `policy`, as it is in force; edits are gone. */
  show(policy) {
    this.inForce = policy;
    this.kind.value = policy.kind;
    this.fill(policy);
    this.setEdited(false);
    this.clearProblems();
  }

  /** What the form says now. A number that is none goes as its text: the server says what is wrong. */
  policy() {
    return { kind: this.kind.value, ...this.read() };
  }

  /** Each problem at its field; what belongs to none of them above the buttons. */
  showProblems(problems, message) {
    this.clearProblems();
    const rest = [];
    for (const problem of problems) {
      const place = this.problemPlace(problem.key);
      const text = `Expected ${problem.expected}. ${sentence(problem.fix)}`;
      if (!place) {
        rest.push(`${problem.key}: ${text}`);
        continue;
      }
      place.textContent = place.textContent ? `${place.textContent} ${text}` : text;
      for (const input of this.form.querySelectorAll(`[aria-describedby~="${CSS.escape(place.id)}"]`)) input.setAttribute("aria-invalid", "true");
    }
    this.general.textContent = problems.length ? rest.join(" ") : message;
    this.form.querySelector("[aria-invalid]")?.focus();
  }

  say(text) {
    this.said.textContent = text;
  }

  chooseKind() {
    const kind = this.kind.value;
    this.fill(kind === this.inForce.kind ? this.inForce : this.presets[kind] ?? {});
    this.clearProblems();
  }

  fill(policy) {
    const model = this.resolved({ $ref: this.schema.discriminator.mapping[this.kind.value] });
    this.form.querySelector("#kind-hint").textContent = firstSentence(model.description);
    const made = this.section(model, "policy", policy);
    this.read = made.read;
    this.fields.replaceChildren(...made.elements);
  }

  /** The inputs of one section: its elements, and `read` for what they say. */
  section(model, key, values) {
    const made = Object.entries(model.properties)
      .filter(([name]) => name !== "kind")
      .map(([name, property]) => [name, this.field(name, `${key}.${name}`, property, values?.[name])]);
    return {
      elements: made.map(([, field]) => field.element),
      read: () => Object.fromEntries(made.map(([name, field]) => [name, field.read()]).filter(([, value]) => value !== undefined)),
    };
  }

  field(name, key, property, value) {
    const type = this.resolved(property);
    if (type.type === "object") return this.nested(name, key, type, value);
    if (type.type === "array") return this.table(name, key, property, this.resolved(type.items), value);
    const isNullable = (property.anyOf ?? []).some((each) => each.type === "null");
    const about = { id: key, "data-key": key, "aria-describedby": `${key}-hint ${key}-problem` };
    const input = type.enum
      ? html("select", about, ...type.enum.map((each) => html("option", { value: each }, each)))
      : html("input", { ...about, type: "text", autocomplete: "off", spellcheck: "false", inputmode: isNumber(type) ? "decimal" : null, placeholder: isNullable ? "no limit" : null });
    input.value = value ?? (type.enum ? type.enum[0] : "");
    return {
      element: html("div", { class: "field" }, html("label", { for: key }, name), input, hint(key, property), problemOf(key)),
      read: () => (isNumber(type) ? number(input.value, isNullable) : input.value),
    };
  }

  nested(name, key, type, value) {
    const made = this.section(type, key, value);
    return { element: html("fieldset", { class: "nested" }, html("legend", {}, name), ...made.elements, problemOf(key)), read: made.read };
  }

  /** A list of lines, one input a column. */
  table(name, key, property, line, values) {
    const columns = Object.keys(line.properties);
    const body = html("tbody");
    const add = (row) => body.append(html("tr", {},
      ...columns.map((column) => html("td", {}, html("input", {
        type: "text", inputmode: "numeric", autocomplete: "off", "aria-label": `${name}: ${column}`,
        "aria-describedby": `${key}-problem`, "data-column": column, value: row?.[column] ?? "",
      }))),
      html("td", {}, html("button", { type: "button", "aria-label": `Remove this line of ${name}`, onclick: (event) => {
        event.target.closest("tr").remove();
        this.setEdited(true);
      } }, "×"))));
    (values ?? []).forEach(add);
    const more = html("button", { type: "button", onclick: () => { add(); this.setEdited(true); body.lastChild.querySelector("input").focus(); } }, "Add a line");
    return {
      element: html("fieldset", { class: "field" }, html("legend", {}, name),
        html("table", { class: "steps" }, html("thead", {}, html("tr", {}, ...columns.map((column) => html("th", { scope: "col" }, column)), html("th"))), body),
        more, hint(key, property), problemOf(key)),
      read: () => [...body.rows].map((row) => Object.fromEntries([...row.querySelectorAll("input")].map((input) => [input.dataset.column, number(input.value, false)]))),
    };
  }

  resolved(property) {
    const found = property.anyOf?.find((each) => each.type !== "null") ?? property;
    return found.$ref ? this.schema.$defs[found.$ref.split("/").at(-1)] : found;
  }

  /** The place for the problems of `key`: its own, or that of the list or section that holds it. */
  problemPlace(key) {
    for (let name = key; name.includes("."); name = name.slice(0, name.lastIndexOf("."))) {
      const place = document.getElementById(`${name}-problem`);
      if (place) return place;
    }
    return null;
  }

  clearProblems() {
    for (const place of this.form.querySelectorAll(".problem")) place.textContent = "";
    for (const input of this.form.querySelectorAll("[aria-invalid]")) input.removeAttribute("aria-invalid");
  }

  setEdited(isEdited) {
    this.isEdited = isEdited;
    this.apply.disabled = this.discard.disabled = !isEdited;
    if (isEdited) this.say("");
  }
}

const isNumber = (type) => type.type === "integer" || type.type === "number";

const hint = (key, property) => html("p", { class: "hint", id: `${key}-hint` }, property.description ?? "");

const problemOf = (key) => html("p", { class: "problem", id: `${key}-problem`, role: "alert" });

function number(text, isNullable) {
  const trimmed = text.trim();
  if (trimmed === "") return isNullable ? null : undefined;
  return Number.isFinite(Number(trimmed)) ? Number(trimmed) : trimmed;
}

const firstSentence = (text) => (text ?? "").replaceAll("\n", " ");

const sentence = (text) => `${text[0].toUpperCase()}${text.slice(1)}.`;
