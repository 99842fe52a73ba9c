// What the page shows, as the part of the address after `#`: sharing it shares the view. Never the token.

const KEYS = ["table", "version", "language", "query", "view", "chart"];

export function read() {
  const found = new URLSearchParams(location.hash.slice(1));
  return Object.fromEntries(KEYS.filter((key) => found.has(key)).map((key) => [key, found.get(key)]));
}

export function write(changes) {
  const found = { ...read(), ...changes };
  const kept = new URLSearchParams();
  for (const key of KEYS) {
    if (found[key] !== undefined && found[key] !== null && found[key] !== "") kept.set(key, found[key]);
  }
  const hash = `#${kept}`;
  if (hash !== location.hash) history.replaceState(null, "", hash);
}
