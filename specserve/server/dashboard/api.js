// Requests to the server that serves this page, with the key that this tab was given.

const KEY = "specserve.key";

/** An answer that is no success: `status`, the server's message, and its problems by key. */
export class Refused extends Error {
  constructor(status, error) {
    super(error.message);
    this.status = status;
    this.problems = error.problems ?? [];
  }
}

export const rememberKey = (key) => sessionStorage.setItem(KEY, key);
export const forgetKey = () => sessionStorage.removeItem(KEY);
export const hasKey = () => sessionStorage.getItem(KEY) !== null;

export const readData = (after) => call("GET", `dashboard/data?after=${after}`);
export const readForm = () => call("GET", "dashboard/form");

/** Change the policy, if it still is what was seen; without `seen`, whatever it is. */
export const changePolicy = (change, seen) =>
  call("PUT", "v1/policy", change, seen ? { "if-match": `"${seen}"` } : {});

async function call(method, path, body, headers = {}) {
  const key = sessionStorage.getItem(KEY);
  const answer = await fetch(path, {
    method,
    headers: { ...headers, ...(key === null ? {} : { authorization: bearer(key) }) },
    body: body === undefined ? undefined : JSON.stringify(body),
    cache: "no-store",
    signal: AbortSignal.timeout(10_000),
  });
  const found = await answer.json();
  if (!answer.ok) throw new Refused(answer.status, found.error);
  return found;
}

/** A header holds bytes, and the server expects the key's UTF-8. */
function bearer(key) {
  return "Bearer " + String.fromCharCode(...new TextEncoder().encode(key));
}
