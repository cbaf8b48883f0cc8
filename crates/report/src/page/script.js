"use strict";
// The tooltip and the switch of the theme. Words come from the page as text; nothing is ever parsed as HTML.
(() => {
  const root = document.documentElement;
  const button = document.getElementById("theme");
  const themes = ["auto", "light", "dark"];
  let theme = "auto";
  const apply = (name) => {
    theme = themes.includes(name) ? name : "auto";
    if (theme === "auto") delete root.dataset.theme; else root.dataset.theme = theme;
    button.textContent = "Theme: " + theme;
  };
  // Files opened from disk may not keep anything: then the choice lasts as long as the page.
  const kept = (act) => { try { return act(localStorage); } catch { return null; } };
  button.hidden = false;
  apply(kept((store) => store.getItem("breakeven-theme")));
  button.addEventListener("click", () => {
    apply(themes[(themes.indexOf(theme) + 1) % themes.length]);
    kept((store) => store.setItem("breakeven-theme", theme));
  });

  const tip = document.getElementById("tip");
  const make = (tag, words, name) => {
    const made = document.createElement(tag);
    if (words) made.textContent = words;
    if (name) made.className = name;
    return made;
  };
  const fill = (at) => {
    const table = make("table");
    for (const [name, device, median, ratio, spread] of at.devices) {
      const row = table.insertRow();
      const first = row.insertCell();
      first.append(make("span", "", "mark " + name), device);
      for (const words of [median, ratio]) { const cell = row.insertCell(); cell.textContent = words; cell.className = "number"; }
      const last = row.insertCell();
      last.textContent = spread;
      last.className = "quiet";
    }
    tip.replaceChildren(make("b", at.size), table);
  };
  const place = (x, y) => {
    tip.hidden = false;
    const box = tip.getBoundingClientRect();
    const left = x + 16 + box.width < innerWidth ? x + 16 : x - 16 - box.width;
    tip.style.left = Math.max(8, Math.min(left, innerWidth - box.width - 8)) + "px";
    tip.style.top = Math.max(8, Math.min(y - box.height / 2, innerHeight - box.height - 8)) + "px";
  };

  for (const figure of document.querySelectorAll("figure")) {
    const plot = figure.querySelector(".plot");
    const svg = plot.querySelector("svg");
    const data = JSON.parse(figure.querySelector("script").textContent);
    const tips = data.tips;
    if (!tips.length) continue;
    const cursor = document.createElementNS(svg.namespaceURI, "line");
    cursor.setAttribute("class", "cursor");
    cursor.setAttribute("y1", data.top);
    cursor.setAttribute("y2", data.bottom);
    let now = -1;
    const hide = () => { tip.hidden = true; cursor.remove(); };
    const show = (number, x, y) => {
      now = number;
      const at = tips[number];
      cursor.setAttribute("x1", at.x);
      cursor.setAttribute("x2", at.x);
      svg.append(cursor);
      fill(at);
      const box = svg.getBoundingClientRect();
      place(x ?? box.left + at.x * box.width / data.width, y ?? box.top + box.height / 2);
      plot.setAttribute("aria-valuenow", number);
      plot.setAttribute("aria-valuetext", at.size + ": " + at.devices.map((d) => d[1] + " " + d[2] + ", " + d[3]).join("; "));
    };
    // With the script a chart is a slider over the sizes; without it, a picture.
    for (const [name, value] of [["role", "slider"], ["tabindex", 0], ["aria-valuemin", 0], ["aria-valuemax", tips.length - 1], ["aria-valuenow", 0]]) {
      plot.setAttribute(name, value);
    }
    const near = (event) => {
      const box = svg.getBoundingClientRect();
      const x = (event.clientX - box.left) * data.width / box.width;
      let best = 0;
      tips.forEach((at, number) => { if (Math.abs(at.x - x) < Math.abs(tips[best].x - x)) best = number; });
      show(best, event.clientX, event.clientY);
    };
    plot.addEventListener("pointermove", near);
    plot.addEventListener("pointerdown", near);
    plot.addEventListener("pointerleave", hide);
    plot.addEventListener("focus", () => { if (plot.matches(":focus-visible")) show(Math.max(now, 0)); });
    plot.addEventListener("blur", hide);
    plot.addEventListener("keydown", (event) => {
      const last = tips.length - 1;
      const to = { ArrowRight: now + 1, ArrowUp: now + 1, ArrowLeft: now - 1, ArrowDown: now - 1, Home: 0, End: last }[event.key];
      if (event.key === "Escape") hide();
      if (to === undefined) return;
      event.preventDefault();
      show(Math.max(0, Math.min(last, to)));
    });
  }
  addEventListener("scroll", () => { tip.hidden = true; }, { passive: true });
})();
