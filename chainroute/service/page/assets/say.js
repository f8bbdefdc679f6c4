/** What the page tells: a line of status, and the service's faults. */

import { Refusal } from "./api.js";
import { $ } from "./dom.js";
import { change } from "./state.js";

export const say = (text) => ($("#status").textContent = text);

/** Runs something that the service may refuse, and shows why, in the words of `told`. */
export async function trying(action, told = (fault) => fault) {
  try {
    change({ faults: [] });
    return await action();
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    change({ faults: error.faults.map(told) });
    if (error.status === 401) $("#settings").showModal();
    const count = error.faults.length;
    say(`The service found ${count === 1 ? "a fault" : `${count} faults`}.`);
    return null;
  }
}
