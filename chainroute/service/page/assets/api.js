/** The service's HTTP interface. Whatever it refuses is thrown as a `Refusal` with its coded faults. */

export class Refusal extends Error {
  constructor(faults, status = 0) {
    super(faults.map((fault) => fault.message).join(" "));
    this.faults = faults;
    this.status = status;
  }
}

/** The bearer token, if the service asks for one; kept for this tab only. */
export const token = {
  get: () => sessionStorage.getItem("token") ?? "",
  set: (value) => sessionStorage.setItem("token", value),
};

export const health = () => call("GET", "health");
export const examples = () => call("GET", "examples");
export const example = (name) => call("GET", `examples/${encodeURIComponent(name)}`);
export const solve = (request, roads) => call("POST", `solve${by(roads)}`, JSON.stringify(request));
export const job = (id) => call("GET", `jobs/${id}`);
export const cancel = (id) => call("DELETE", `jobs/${id}`);
export const check = (problem, solution, roads, signal) =>
  call("POST", `check${by(roads)}`, JSON.stringify({ problem, solution }), signal);
export const geojson = (problem, solution, roads) =>
  call("POST", `geojson${by(roads)}`, JSON.stringify({ problem, solution }));

/** Whether straight lines are measured, or roads. */
const by = (roads) => (roads ? "?roads=true" : "");

/** `index` says which problem is meant where a file holds several. */
export function read(file, index, roads) {
  const form = new FormData();
  form.append("file", file);
  if (index) form.append("index", index);
  return call("POST", `read${by(roads)}`, form);
}

/** The job's events, as {event, data}, until its end or until the stream breaks off. EventSource could not
 * carry the token. */
export async function* events(id) {
  const response = await fetched("GET", `jobs/${id}/events?cancel_on_disconnect=true`);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const { value, done } = await reader.read().catch(() => ({ done: true }));
    if (done) return;
    text += value.replaceAll("\r", "");
    const blocks = text.split("\n\n");
    text = blocks.pop();
    for (const block of blocks) {
      const fields = block.split("\n").map((line) => line.match(/^(\w+): ?(.*)$/) ?? []);
      const of = (name) =>
        fields
          .filter((field) => field[1] === name)
          .map((field) => field[2])
          .join("\n");
      if (of("data")) yield { event: of("event"), data: JSON.parse(of("data")) };
    }
  }
}

async function call(method, path, body, signal) {
  return (await fetched(method, path, body, signal)).json();
}

async function fetched(method, path, body, signal) {
  const headers = typeof body === "string" ? { "Content-Type": "application/json" } : {};
  if (token.get()) headers.Authorization = `Bearer ${token.get()}`;
  let response;
  try {
    response = await fetch(`v1/${path}`, { method, body, headers, signal });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refusal([{ code: "no-answer", message: "the service does not answer.", where: "", path: "" }]);
  }
  if (response.ok) return response;
  const { error } = await response.json().catch(() => ({}));
  const unknown = [{ code: `http-${response.status}`, message: response.statusText, where: "", path: "" }];
  throw new Refusal(error?.faults ?? unknown, response.status);
}
