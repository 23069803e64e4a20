"use strict";
// Adds the filter of the findings, sorting of tables, the theme button and links into folded rows. The page is whole without it.
// Its words are in data-say attributes, where they are translated with the page.
(() => {
  const byId = (id) => document.getElementById(id);
  const all = (selector, root = document) => Array.from(root.querySelectorAll(selector));

  const theme = () => {
    const root = document.documentElement;
    const button = byId("theme");
    const system = window.matchMedia("(prefers-color-scheme: dark)");
    const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : system.matches);
    const show = () => {
      const words = button.dataset;
      button.textContent = isDark() ? words.sayLight : words.sayDark;
      button.setAttribute("aria-label", isDark() ? words.sayUseLight : words.sayUseDark);
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
      const status = part(scope, "filter-status");
      const form = shown === rows.length ? status.dataset.sayAll : status.dataset.saySome;
      status.textContent = form.replace("{shown}", shown).replace("{all}", rows.length);
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
      openAll.textContent = open ? openAll.dataset.sayClose : openAll.dataset.sayOpen;
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

  const UNITS = { ns: 1, us: 1e3, "µs": 1e3, ms: 1e6, s: 1e9, min: 6e10, h: 3.6e12, k: 1e3, M: 1e6, G: 1e9, KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30 };
  const FIGURE = /^[^\d−-]{0,10}([−-]?[\d,]*\.?\d+)\s*([A-Za-zµ]*)/;
  const figure = (text) => {
    const found = FIGURE.exec(text);
    return found && Number(found[1].replaceAll(",", "").replace("−", "-")) * (UNITS[found[2]] || 1);
  };

  // A click on the head of a column sorts the rows of each group, largest figures first; another turns them round.
  const sortable = (table) => {
    const heads = table.tHead ? Array.from(table.tHead.rows) : [];
    if (heads.length !== 1 || Array.from(heads[0].cells).some((head) => head.colSpan > 1)) return;
    const columns = Array.from(heads[0].cells);
    const bodies = Array.from(table.tBodies).map((body) => ({
      body,
      rows: Array.from(body.rows).filter((row) => row.cells.length === columns.length),
    }));
    if (bodies.reduce((sum, of) => sum + of.rows.length, 0) < 3) return;
    columns.forEach((head, at) => {
      if (!head.textContent.trim() || head.querySelector("button, .vh")) return;
      const button = document.createElement("button");
      button.type = "button";
      button.className = "sort";
      button.append(...head.childNodes);
      head.append(button);
      const text = (row) => row.cells[at].textContent.trim();
      const isEmpty = (row) => text(row) === "" || text(row) === "–";
      button.addEventListener("click", () => {
        const kept = bodies.flatMap((of) => of.rows).filter((row) => !isEmpty(row));
        const isFigures = kept.every((row) => figure(text(row)) !== null);
        const first = isFigures ? "descending" : "ascending";
        const other = isFigures ? "ascending" : "descending";
        const order = head.getAttribute("aria-sort") === first ? other : first;
        columns.forEach((column) => column.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", order);
        const turn = order === "ascending" ? 1 : -1;
        const compare = (a, b) =>
          isFigures ? figure(text(a)) - figure(text(b)) : text(a).localeCompare(text(b), undefined, { numeric: true });
        for (const of of bodies) {
          // Rows without a value stay at the end.
          of.rows.sort((a, b) => isEmpty(a) - isEmpty(b) || (isEmpty(a) ? 0 : turn * compare(a, b)));
          of.body.append(...of.rows);
        }
      });
    });
  };

  theme();
  all("main table").forEach(sortable);
  all(".filters").forEach(filter);
  window.addEventListener("hashchange", reveal);
  reveal();
})();
