"use strict";
// Adds the filter of the findings, the theme button and links into folded rows. The page is whole without it.
(() => {
  const byId = (id) => document.getElementById(id);
  const all = (selector, root = document) => Array.from(root.querySelectorAll(selector));

  const theme = () => {
    const root = document.documentElement;
    const button = byId("theme");
    const system = window.matchMedia("(prefers-color-scheme: dark)");
    const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : system.matches);
    const show = () => {
      button.textContent = isDark() ? "Light" : "Dark";
      button.setAttribute("aria-label", isDark() ? "Use the light theme" : "Use the dark theme");
    };
    button.hidden = false;
    button.addEventListener("click", () => {
      root.dataset.theme = isDark() ? "light" : "dark";
      show();
    });
    system.addEventListener("change", show);
    show();
  };

  // A page of several documents has a filter for each; the ends of the ids tell its parts.
  const part = (scope, id) => scope.querySelector(`[id$="${id}"]`);

  const filter = (bar) => {
    const scope = bar.closest("section");
    const [everything, ...chips] = all(".chip", bar);
    const layer = part(scope, "filter-layer");
    const text = part(scope, "filter-text");
    const openAll = part(scope, "open-all");
    const rows = all(".finding", scope).map((row) => ({
      row,
      verdict: row.dataset.verdict,
      layer: row.closest(".layer").dataset.layer,
      text: row.textContent.toLowerCase(),
    }));
    const isPressed = (button) => button.getAttribute("aria-pressed") === "true";
    const press = (button, on) => button.setAttribute("aria-pressed", String(on));

    const apply = () => {
      const verdicts = new Set(chips.filter(isPressed).map((chip) => chip.dataset.verdict));
      const words = text.value.toLowerCase().split(/\s+/).filter(Boolean);
      const isFiltered = verdicts.size > 0 || layer.value !== "" || words.length > 0;
      let shown = 0;
      for (const item of rows) {
        const fits =
          (verdicts.size === 0 || verdicts.has(item.verdict)) &&
          (layer.value === "" || layer.value === item.layer) &&
          words.every((word) => item.text.includes(word));
        item.row.hidden = !fits;
        if (fits) shown += 1;
      }
      for (const rest of all(".findings .rest", scope)) {
        rest.hidden = !rest.querySelector(".finding:not([hidden])");
        rest.open = isFiltered;
      }
      for (const group of all(".layer", scope)) {
        group.hidden = !group.querySelector(".finding:not([hidden])");
      }
      press(everything, verdicts.size === 0);
      part(scope, "no-match").hidden = shown > 0;
      part(scope, "filter-status").textContent =
        shown === rows.length ? `${shown} settings` : `${shown} of ${rows.length} settings`;
    };

    everything.addEventListener("click", () => {
      chips.forEach((chip) => press(chip, false));
      apply();
    });
    for (const chip of chips) {
      chip.addEventListener("click", () => {
        press(chip, !isPressed(chip));
        apply();
      });
    }
    layer.addEventListener("change", apply);
    text.addEventListener("input", apply);
    openAll.addEventListener("click", () => {
      const open = !isPressed(openAll);
      press(openAll, open);
      openAll.textContent = open ? "Close all" : "Open all";
      rows.forEach((item) => (item.row.open = open));
    });
    bar.hidden = false;
  };

  // A link to a row that is folded away or filtered out brings it back and opens it.
  const reveal = () => {
    const target = byId(decodeURIComponent(location.hash.slice(1)));
    if (!target) return;
    if (target.hidden) {
      // Layers are sections too; the filter is in the one around them.
      const scopes = all(".filters").map((bar) => bar.closest("section"));
      const scope = scopes.find((one) => one.contains(target));
      part(scope, "filter-text").value = "";
      part(scope, "filter-layer").value = "";
      all(".chip", scope)[0].click();
    }
    for (let at = target; at; at = at.parentElement) {
      if (at.tagName === "DETAILS") at.open = true;
    }
    target.scrollIntoView();
  };

  theme();
  all(".filters").forEach(filter);
  window.addEventListener("hashchange", reveal);
  reveal();
})();
