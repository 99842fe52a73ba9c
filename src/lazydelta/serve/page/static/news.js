// Whether the server is there, and what is new in the table: a short question every few seconds. No connection is
// held: a browser has six for all pages of a server.

import { ApiError, ask } from "./api.js";
import { byId } from "./dom.js";

const POLL_MS = 3000;
const SILENCE_MS = 45000; // that an answer may take
const RETRY_MS = [1000, 2000, 5000, 10000];

// A page that nobody sees asks for nothing: each look is a listing of the table's log.
function seen() {
  if (!document.hidden) return Promise.resolve();
  return new Promise((resolve) => {
    document.addEventListener("visibilitychange", () => resolve(), { once: true });
  });
}

export class News {
  constructor({ onNews, onLost, onBack }) {
    this.onNews = onNews;
    this.onLost = onLost;
    this.onBack = onBack;
    this.wasGone = false;
  }

  // An answer broke off, or there was none: the next that comes is news of a server that is back.
  lose() {
    this.wasGone = true;
  }

  found() {
    this.wasGone = false;
  }

  // `version`: what is shown; null: one of the past, of which there is no news but that the server is there.
  async follow(table, version, signal) {
    let after = version;
    let tries = 0;
    const path = () => (version === null ? "tables" : `tables/${encodeURIComponent(table)}/news?after=${after}`);
    while (!signal.aborted) {
      await seen();
      let wait = POLL_MS;
      try {
        const limited = AbortSignal.any?.([signal, AbortSignal.timeout(SILENCE_MS)]) ?? signal; // some browsers have none
        const found = await ask(path(), { signal: limited });
        if (signal.aborted) return;
        tries = 0;
        this.#connected(version === null ? "" : "live");
        if (signal.aborted) return;
        if (version !== null && found.version < after) {
          this.onBack(); // another table has taken its place
          return;
        }
        if (version !== null && found.version > after) {
          this.onNews(found, after);
          after = found.version;
        }
      } catch (error) {
        if (signal.aborted) return;
        if (error instanceof ApiError && error.status < 500 && error.status !== 429) {
          this.#tell("", false);
          this.onLost(error);
          return;
        }
        wait = RETRY_MS[Math.min(tries, RETRY_MS.length - 1)];
        tries += 1;
        if (error instanceof ApiError) this.#tell(`no news: ${error.message}; looking again`, true);
        else this.#gone();
      }
      await new Promise((resolve) => setTimeout(resolve, wait));
    }
  }

  #connected(text) {
    this.#tell(text, false);
    if (this.wasGone) {
      this.wasGone = false;
      this.onBack();
    }
  }

  #gone() {
    this.lose();
    this.#tell("the server has gone; reconnecting", true);
  }

  #tell(text, isBad) {
    const element = byId("connection");
    if (element.textContent !== text) element.textContent = text;
    element.classList.toggle("bad", isBad);
  }
}
