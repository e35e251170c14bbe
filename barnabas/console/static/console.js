// What a page cannot do without a script: keys, dark or light, copying. Forms and links work without it.
"use strict";

(function () {
  const kept = localStorage.getItem("theme");
  if (kept) document.documentElement.dataset.theme = kept;
})();

function turnTheme() {
  const root = document.documentElement;
  const isDark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = isDark ? "light" : "dark";
  localStorage.setItem("theme", root.dataset.theme);
}

document.addEventListener("click", async (event) => {
  const button = event.target.closest("button");
  if (!button) return;
  if ("themeButton" in button.dataset) turnTheme();
  if ("copy" in button.dataset) {
    const text = document.getElementById(button.dataset.copy).textContent;
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = "Copied";
    } catch {
      button.textContent = "Select the text to copy it";
    }
  }
});

let before = "";
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.closest("input, textarea, select")) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  if (event.key === "/") {
    const field = document.querySelector("input[type=search]");
    if (field) {
      event.preventDefault();
      field.focus();
    }
  } else if (before === "g") {
    const link = document.querySelector(`header a[data-key="${CSS.escape(event.key)}"]`);
    if (link) link.click();
    before = "";
    return;
  }
  before = event.key;
});

// A search and a live view go on by themselves, step by step, until they are stopped.
document.addEventListener("click", (event) => {
  if (!event.target.closest("button[data-stop]")) return;
  const step = document.getElementById("step");
  const address = step && step.getAttribute("hx-get");
  if (!address) return;
  step.addEventListener("htmx:beforeSwap", (answer) => {
    answer.detail.shouldSwap = false; // it is on its way: it would be shown now, and again later
  });
  const on = document.createElement("button");
  on.id = "step";
  on.type = "button";
  on.textContent = "Go on";
  on.setAttribute("hx-get", address);
  on.setAttribute("hx-swap", "outerHTML");
  step.replaceWith(on);
  htmx.process(on);
});

document.addEventListener("htmx:afterSettle", () => {
  const live = document.querySelector(".live");
  while (live && live.childElementCount > 500) live.lastElementChild.remove();
});
