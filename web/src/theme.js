// Light or dark as the reader chose, else as the system is; for print, folded parts open.
import { ready } from "./dom.js";

const KEY = "foldwise-theme";
const root = document.documentElement;
const dark = matchMedia("(prefers-color-scheme: dark)");

// Storage is refused in some browsers for pages opened from a file; then the choice lasts as long as the page.
function stored() {
  try {
    return localStorage.getItem(KEY);
  } catch {
    return null;
  }
}

function store(theme) {
  try {
    localStorage.setItem(KEY, theme);
  } catch {
    // Not remembered.
  }
}

const isDark = () => (root.dataset.theme ?? (dark.matches ? "dark" : "light")) === "dark";

const first = stored();
if (first === "dark" || first === "light") root.dataset.theme = first;

// On a phone the contents of a long page would be all that is seen of it.
ready(() => {
  const contents = document.querySelector(".contents details");
  if (contents && matchMedia("(max-width: 600px)").matches) contents.open = false;
});

ready(() => {
  const button = document.querySelector("button.theme");
  if (!button) return;
  const tell = () => {
    button.textContent = isDark() ? "Light theme" : "Dark theme";
    document.dispatchEvent(new CustomEvent("foldwise-theme"));
  };
  button.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    store(root.dataset.theme);
    tell();
  });
  dark.addEventListener("change", tell);
  button.hidden = false;
  tell();
});

let opened = [];
addEventListener("beforeprint", () => {
  opened = [...document.querySelectorAll("details.card:not([open])")];
  for (const one of opened) one.open = true;
});
addEventListener("afterprint", () => {
  for (const one of opened) one.open = false;
});
