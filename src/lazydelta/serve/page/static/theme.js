// Light, dark, or as the system has it.

import { kept } from "./kept.js";

const stored = kept("localStorage", "lazydelta.theme");
const NEXT = { system: "light", light: "dark", dark: "system" };
const SHOWN = { system: ["◐", "as the system"], light: ["☀", "light"], dark: ["☾", "dark"] };

export function start(button) {
  let theme = NEXT[stored.get()] ? stored.get() : "system";
  const apply = () => {
    if (theme === "system") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
    const [sign, name] = SHOWN[theme];
    button.textContent = sign;
    button.setAttribute("aria-label", `Theme: ${name}`);
    button.title = `Theme: ${name}`;
    for (const canvas of document.querySelectorAll("canvas")) canvas.dispatchEvent(new Event("theme"));
  };
  button.addEventListener("click", () => {
    theme = NEXT[theme];
    stored.set(theme);
    apply();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", apply);
  apply();
}
