"use strict";
// Sorting and filtering of tables, the decision panel and the release what-if. Nothing is loaded from anywhere.
(() => {
  const all = (selector, root = document) => Array.from(root.querySelectorAll(selector));

  const key = (row, column) => {
    const cell = row.cells[column];
    const raw = cell.dataset.sort ?? cell.textContent.trim();
    const number = Number(raw);
    return raw !== "" && Number.isFinite(number) ? number : raw;
  };
  const compare = (a, b) => {
    if (typeof a === typeof b) return typeof a === "number" ? a - b : a.localeCompare(b, "en", { numeric: true });
    return typeof a === "number" ? -1 : 1; // figures before reasons
  };
  for (const button of all("th button[data-sort]")) {
    button.addEventListener("click", () => {
      const head = button.closest("th");
      const table = head.closest("table");
      const down = head.getAttribute("aria-sort") === "ascending";
      all("th", table.tHead).forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const column = head.cellIndex;
      const rows = Array.from(table.tBodies[0].rows);
      rows.sort((a, b) => (down ? -1 : 1) * compare(key(a, column), key(b, column)));
      table.tBodies[0].append(...rows);
    });
  }

  const filters = document.getElementById("filters");
  if (filters) {
    filters.hidden = false;
    const rows = all("#queries-table tbody tr");
    const shown = document.getElementById("shown");
    const apply = () => {
      const text = filters.elements.text.value.trim().toLowerCase();
      const wanted = ["arm", "status", "mark"].map((name) => [name, filters.elements[name].value]);
      let count = 0;
      for (const row of rows) {
        const fits = wanted.every(([name, value]) => value === "" || row.dataset[name].split(" ").includes(value)) &&
          (text === "" || row.textContent.toLowerCase().includes(text));
        row.hidden = !fits;
        count += fits ? 1 : 0;
      }
      shown.textContent = `${count} of ${rows.length} rows`;
    };
    filters.addEventListener("input", apply);
    filters.addEventListener("reset", () => setTimeout(apply));
    filters.addEventListener("submit", (event) => event.preventDefault());
    apply();
  }

  let opened = [];
  addEventListener("beforeprint", () => {
    opened = all("details:not([open])");
    opened.forEach((entry) => { entry.open = true; });
  });
  addEventListener("afterprint", () => opened.forEach((entry) => { entry.open = false; }));

  // --- decision panel: the report's own arithmetic, with the reader's weights -------------------------------------
  const random = (seed) => () => {
    seed = (seed + 0x6d2b79f5) | 0;
    let t = Math.imul(seed ^ (seed >>> 15), 1 | seed);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
  const normal = (next) => Math.sqrt(-2 * Math.log(1 - next())) * Math.cos(2 * Math.PI * next());
  const gamma = (shape, next) => { // Marsaglia and Tsang 2000
    if (shape < 1) return gamma(shape + 1, next) * Math.pow(1 - next(), 1 / shape);
    const d = shape - 1 / 3, c = 1 / Math.sqrt(9 * d);
    for (;;) {
      const x = normal(next), v = Math.pow(1 + c * x, 3);
      if (v > 0 && Math.log(1 - next()) < 0.5 * x * x + d - d * v + d * Math.log(v)) return d * v;
    }
  };
  const rank = (axis, weights, settings) => {
    const sum = weights.reduce((a, b) => a + b, 0);
    const shares = weights.map((weight) => weight / sum);
    const kept = axis.options.map((option, index) => index).filter((index) => !axis.options[index].excluded);
    const score = axis.options.map((_, index) => axis.criteria.reduce((total, entry, row) =>
      total + shares[row] * entry.scores[index].value, 0));
    const wins = axis.options.map(() => 0);
    const next = random(settings.seed);
    for (let draw = 0; draw < settings.draws; draw += 1) {
      const drawn = shares.map((share) => (share > 0 ? gamma(share * settings.concentration, next) : 0));
      const total = axis.options.map(() => 0);
      axis.criteria.forEach((entry, row) => kept.forEach((index) => {
        const bound = entry.scores[index];
        total[index] += drawn[row] * (bound.low + (bound.high - bound.low) * next());
      }));
      wins[kept.reduce((best, index) => (total[index] > total[best] ? index : best), kept[0])] += 1;
    }
    return { shares, score, kept, rank1: wins.map((count) => count / settings.draws) };
  };
  const data = document.getElementById("decision-data");
  if (data) {
    const decision = JSON.parse(data.textContent);
    for (const axis of decision.axes) {
      const form = document.getElementById(`weights-${axis.axis}`);
      if (!form) continue;
      form.hidden = false;
      const out = document.getElementById(`outcome-${axis.axis}`);
      const update = () => {
        const weights = axis.criteria.map((entry) => Number(form.elements[entry.id].value));
        axis.criteria.forEach((entry, row) => { form.elements[`out-${entry.id}`].value = weights[row].toFixed(1); });
        if (!weights.some((weight) => weight > 0)) { out.textContent = "Every weight is zero: nothing to rank."; return; }
        const result = rank(axis, weights, decision);
        if (result.kept.length === 0) { out.textContent = "No option passes the gates."; return; }
        const order = result.kept.slice().sort((a, b) => result.score[b] - result.score[a]);
        const first = order[0];
        const sure = result.rank1[first] >= decision.threshold;
        const say = !sure ? "is too close to call; leading" : axis.options[first].open ? "is not settled, a gate is open; leading" : "favours";
        out.textContent = `With these weights the evidence ${say}: ${axis.options[first].title}. ` + order.map((index) =>
          `${axis.options[index].title}: score ${result.score[index].toFixed(2)}, first in ` +
          `${Math.round(100 * result.rank1[index])} %`).join("; ") + ".";
      };
      form.addEventListener("input", update);
      form.addEventListener("reset", () => setTimeout(update));
      form.addEventListener("submit", (event) => event.preventDefault());
      update();
    }
  }

  const lag = document.getElementById("lag-form");
  if (lag) {
    lag.hidden = false;
    const out = document.getElementById("lag-out");
    const update = () => {
      const days = (name) => Math.max(0, Number(lag.elements[name].value) || 0);
      const [engine, python, own] = ["engine", "python", "own"].map(days);
      const wait = Math.max(0, engine - python);
      out.textContent = `inline: distributed after ${python + wait} days, users of plain datafusion wait ${wait} extra; ` +
        `external and decorator: distributed after ${Math.max(engine, python) + own} days, plain users wait 0 extra.`;
    };
    lag.addEventListener("input", update);
    lag.addEventListener("submit", (event) => event.preventDefault());
    update();
  }
})();
