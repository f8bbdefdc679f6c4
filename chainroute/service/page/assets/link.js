/** The work as an address: problem and routes, compressed, behind the `#`, which browsers send to nobody. */

import { toDocument } from "./problem.js";
import { toDocument as routesDocument } from "./solution.js";
import { state } from "./state.js";

const MOST = 30_000; // characters of an address that most programs still pass on
const MARK = "#work=";

/** The address of the work on show; null where it would be too long. */
export async function toAddress() {
  const { model, shown } = state;
  const problem = toDocument(model);
  const { roads } = model;
  const routes = shown ? routesDocument(model, shown) : {};
  const work = shown || roads ? { problem_document: problem, roads, ...routes } : problem;
  const bytes = new TextEncoder().encode(JSON.stringify(work));
  const packed = await through(bytes, new CompressionStream("deflate-raw"));
  const text = btoa(Array.from(packed, (byte) => String.fromCharCode(byte)).join(""));
  const safe = text.replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
  const address = location.origin + location.pathname + MARK + safe;
  return address.length > MOST ? null : address;
}

/** The work in an address as a file; null if there is none. */
export async function fromAddress(hash) {
  if (!hash.startsWith(MARK)) return null;
  let content = hash.slice(0, MOST); // which is no file of ours, and told as such
  try {
    if (hash.length > MOST) throw new RangeError(); // it is not ours, and may unpack to anything
    const text = atob(hash.slice(MARK.length).replaceAll("-", "+").replaceAll("_", "/"));
    const bytes = Uint8Array.from(text, (character) => character.charCodeAt(0));
    content = await through(bytes, new DecompressionStream("deflate-raw"));
  } catch {
    // it was cut off on its way, or made by somebody else
  }
  return new File([content], "link.json");
}

async function through(bytes, stream) {
  const passed = new Blob([bytes]).stream().pipeThrough(stream);
  return new Uint8Array(await new Response(passed).arrayBuffer());
}
