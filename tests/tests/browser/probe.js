"use strict";
// What a test asks a page: plain values leave. Nothing here changes what the page shows, but that it scrolls and unfolds.
window.probe = (() => {
  const numbers = (colour) => (colour.match(/[\d.]+/g) ?? []).map(Number);
  const rgba = (colour) => { const [r = 0, g = 0, b = 0, a = 1] = numbers(colour); return [r, g, b, colour === "none" ? 0 : a]; };
  const over = ([r, g, b, a], below) => [r, g, b].map((part, i) => part * a + below[i] * (1 - a));
  const luminance = (colour) => {
    const [r, g, b] = colour.map((part) => part / 255).map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  // The contrast of WCAG 2.
  const ratio = (one, other) => {
    const [low, high] = [luminance(one), luminance(other)].sort((a, b) => a - b);
    return (high + 0.05) / (low + 0.05);
  };
  const parents = (element) => { const all = []; for (let at = element; at; at = at.parentElement) all.push(at); return all; };
  // What is painted behind an element: backgrounds of all that it lies in, on white paper.
  const ground = (element) =>
    parents(element).reverse().reduce((below, at) => over(rgba(getComputedStyle(at).backgroundColor), below), [255, 255, 255]);
  const contrast = (element, colour) => {
    const opacity = parents(element).reduce((product, at) => product * Number(getComputedStyle(at).opacity), 1);
    const [r, g, b, a] = rgba(colour);
    const behind = ground(element);
    return ratio(over([r, g, b, a * opacity], behind), behind);
  };
  const box = (element) => {
    const { left, top, right, bottom, width, height } = element.getBoundingClientRect();
    return { left, top, right, bottom, width, height };
  };
  const shown = (element) => element.checkVisibility({ visibilityProperty: true }) && box(element).width > 0;
  const frames = () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done())));
  const plots = () => [...document.querySelectorAll("figure .plot")];
  const data = (plot) => JSON.parse(plot.closest("figure").querySelector("script").textContent);

  // Every chart: its name, its extent, and for each device of its tooltip what is drawn of it.
  const charts = () => [...document.querySelectorAll("figure")].map((figure) => {
    const svg = figure.querySelector(".plot svg");
    const devices = new Map(data(figure.querySelector(".plot")).tips.flatMap((tip) => tip.devices.map(([name, label]) => [label, name])));
    const lines = (name) => [...svg.querySelectorAll("path, line, polyline")]
      .filter((line) => name.split(" ").every((part) => line.classList.contains(part)) && getComputedStyle(line).stroke !== "none")
      .filter((line) => shown(svg) && Math.max(line.getBoundingClientRect().width, line.getBoundingClientRect().height) > 1);
    return {
      name: figure.querySelector("figcaption").textContent.slice(0, 40),
      box: box(svg),
      devices: [...devices].map(([label, name]) => ({
        label,
        lines: lines(name).length,
        contrast: Math.max(0, ...lines(name).map((line) => contrast(line, getComputedStyle(line).stroke))),
      })),
    };
  });

  // All text that is visible, from the least legible on: what it says and its contrast.
  const texts = () => {
    const found = [];
    const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walk.nextNode()) {
      const parent = walk.currentNode.parentElement;
      const words = walk.currentNode.data.trim();
      if (!words || !shown(parent)) continue;
      const style = getComputedStyle(parent);
      found.push({ words: words.slice(0, 60), contrast: contrast(parent, parent instanceof SVGElement ? style.fill : style.color) });
    }
    return found.sort((a, b) => a.contrast - b.contrast);
  };

  // The areas that are as wide as half of the page, and how light they are: 0 is black, 1 is white.
  const areas = () => [...document.querySelectorAll("html, body, body *")]
    .filter((element) => shown(element) && box(element).width > innerWidth / 2)
    .map((element) => ({ what: element.tagName + "." + element.className, light: luminance(ground(element)) }));

  // What sticks out to the right, and is not in something that scrolls by itself.
  const sticking = () => [...document.querySelectorAll("body *")]
    .filter((element) => shown(element) && box(element).right > document.documentElement.clientWidth + 0.5)
    .filter((element) => !parents(element).slice(1).some((at) => ["auto", "scroll"].includes(getComputedStyle(at).overflowX)))
    .map((element) => element.tagName + "." + (element.className.baseVal ?? element.className) + ": " + element.textContent.slice(0, 40));

  const tip = () => {
    const tip = document.getElementById("tip");
    const inside = [tip, ...tip.querySelectorAll("*")].map(box).every((b) =>
      b.left >= 0 && b.top >= 0 && b.right <= innerWidth + 0.5 && b.bottom <= innerHeight + 0.5);
    return { shown: shown(tip), inside, text: tip.innerText, heading: tip.querySelector("b")?.textContent ?? "" };
  };

  return {
    charts, texts, areas, sticking, tip,
    ground: () => luminance(ground(document.body)),
    tips: (number) => data(plots()[number]).tips.map((tip) => ({ heading: tip.size, devices: tip.devices.map((device) => device[1]) })),
    // Scrolls a chart into the window; its extent there.
    show: async (number) => {
      plots()[number].scrollIntoView({ block: "center", behavior: "instant" });
      await frames();
      return box(plots()[number].querySelector("svg"));
    },
    button: async () => {
      scrollTo({ top: 0, behavior: "instant" });
      await frames();
      return box(document.getElementById("theme"));
    },
    // The number of the chart that has the keyboard's focus; -1 if none has.
    focused: () => plots().indexOf(document.activeElement),
    unfold: () => document.querySelectorAll("details").forEach((details) => { details.open = true; }),
  };
})();
true;
