// A scatter of rows on any two components, with all that is linked to it.
import { axes, MARGIN } from "./axes.js";
import { canvasView } from "./canvas_view.js";
import { byLevel, byNumber, coloursOf, theme } from "./colours.js";
import { controls } from "./controls.js";
import { decode } from "./data.js";
import { make } from "./dom.js";
import { glView, glWorks } from "./gl_view.js";
import { inside, lasso } from "./lasso.js";
import { legend } from "./legend.js";
import { count, extent, quantiles } from "./numbers.js";
import { showSelected } from "./selected.js";
import { factsOf, tooltip } from "./tooltip.js";

const SVG = "http://www.w3.org/2000/svg";
const ROOM = 1.06; // around the outermost points

// Large and dense with few points, small and faint with many.
const sizeOf = (n) => Math.max(1.6, Math.min(8, 10.2 - 1.5 * Math.log10(n + 1)));
const opacityOf = (n) => Math.max(0.2, Math.min(0.9, 1.35 - 0.19 * Math.log10(n + 1)));

export class Scatter {
  constructor(root) {
    this.root = root;
    this.data = decode(JSON.parse(root.querySelector('script[type="application/json"]').textContent));
    const second = Math.min(1, this.data.components.length - 1);
    this.chosen = { across: 0, up: second };
    this.selected = [];
    this.only = null;
    this.inLasso = false;
    this.build();
    this.colouring = this.colouringOf(this.controls.colour.value);
    this.start();
  }

  build() {
    const { root, data } = this;
    this.controls = controls(data, {
      component: (way, j) => this.component(way, j),
      colour: (name) => this.colour(name),
      lasso: () => this.lassoMode(!this.inLasso),
      zoom: (factor) => this.zoom(factor),
      whole: () => this.whole(),
      middle: () => this.middle(),
    });
    this.controls.up.value = String(this.chosen.up);
    const label = root.getAttribute("aria-label");
    root.removeAttribute("aria-label");
    this.frame = document.createElementNS(SVG, "svg");
    this.frame.setAttribute("class", "axes");
    this.frame.setAttribute("aria-hidden", "true");
    this.canvas = make("canvas", { "aria-hidden": "true" });
    this.stage = make("div", { class: "stage", tabindex: "0", role: "img", "aria-label": label,
      title: "Drag to move, arrow keys too; + and - zoom, and so does the wheel after a click" }, this.canvas);
    this.plot = make("div", { class: "plot" }, this.frame, this.stage);
    this.legend = make("div", { class: "legend", role: "group", "aria-label": "What the colours mean" });
    this.said = make("p", { class: "unseen", "aria-live": "polite" });
    this.below = make("div", { class: "selected" });
    root.append(make("div", { class: "live" }, this.controls.element, this.legend, this.plot, this.said, this.below));
    root.classList.add("running");
    this.tip = tooltip(document.body);
    this.axes = axes(this.frame);
  }

  start() {
    const { width, height } = this.size();
    const on = {
      over: (i) => this.over(i),
      out: () => this.tip.hide(),
      select: (rows) => this.select(rows, false),
      view: () => this.drawAxes(),
    };
    const settings = { width, height, size: sizeOf(this.data.n), opacity: opacityOf(this.data.n), on };
    const gl = glWorks();
    this.view = (gl ? glView : canvasView)(this.canvas, settings);
    if (!gl) {
      this.controls.element.append(make("p", { class: "hint" }, "Drawn without WebGL, which this browser does not offer: slower with many rows."));
    }
    this.listen();
    this.look = theme(this.root);
    this.place();
    this.draw();
    this.drawLegend();
    this.drawSelected();
  }

  listen() {
    lasso(this.stage, {
      wanted: (event) => this.inLasso || event.shiftKey,
      done: (line) => this.around(line),
    });
    // The wheel scrolls the page, unless the plot was clicked before or Ctrl is held.
    this.stage.addEventListener("wheel", (event) => {
      if (!this.stage.contains(document.activeElement) && !event.ctrlKey) event.stopPropagation();
    }, { capture: true, passive: true });
    this.stage.addEventListener("keydown", (event) => this.key(event));
    this.stage.addEventListener("pointerdown", () => this.stage.focus({ preventScroll: true }));
    this.stage.addEventListener("pointerleave", () => this.tip.hide());
    addEventListener("scroll", () => this.tip.hide(), { passive: true });
    document.addEventListener("keydown", (event) => {
      if (event.key !== "Escape") return;
      this.lassoMode(false);
      if (this.selected.length) this.select([]);
    });
    document.addEventListener("foldwise-theme", () => this.themed());
    new ResizeObserver(() => this.resized()).observe(this.plot);
    for (const element of document.querySelectorAll("[data-cluster]")) this.link(element);
  }

  // A row or card elsewhere on the page that is about a cluster.
  link(element) {
    const cluster = Number(element.dataset.cluster);
    if (!this.data.clusters || cluster >= this.data.clusters.names.length) return;
    const show = () => {
      const { codes } = this.data.clusters;
      this.select(Array.from(codes.keys()).filter((i) => codes[i] === cluster));
      this.root.scrollIntoView({ block: "nearest" });
    };
    const dot = element.querySelector(".dot");
    const button = make("button", { type: "button", class: "to-points", title: "Show these rows in the scatter",
      "aria-label": `Show the rows of ${this.data.clusters.names[cluster]} in the scatter`, onclick: show });
    dot ? (dot.replaceWith(button), button.append(dot)) : element.addEventListener("click", show);
  }

  size() {
    const width = Math.max(160, this.plot.clientWidth - MARGIN.left - MARGIN.right);
    return { width, height: Math.round(Math.max(260, Math.min(0.62 * width, 620))) };
  }

  // Coordinates with the same scale both ways, so that all points are inside the first view.
  place() {
    const { width, height } = this.size();
    this.box = { width, height };
    const at = { left: MARGIN.left, top: MARGIN.top, width, height };
    for (const [name, pixels] of Object.entries(at)) this.stage.style[name] = `${pixels}px`;
    this.plot.style.height = `${height + MARGIN.top + MARGIN.bottom}px`;
    const ways = ["across", "up"].map((way) => this.data.components[this.chosen[way]].values());
    const [[left, right], [bottom, top]] = ways.map(extent);
    this.centre = [(left + right) / 2, (bottom + top) / 2];
    this.unit = (Math.max((top - bottom) / 2, ((right - left) / 2) * (height / width)) || 1) * ROOM;
    [this.x, this.y] = ways.map((values, k) => Float32Array.from(values, (value) => (value - this.centre[k]) / this.unit));
    this.home = [[-width / height, width / height], [-1, 1]];
  }

  draw() {
    const { data, look } = this;
    this.view.draw({
      x: this.x, y: this.y, places: this.colouring.places, colours: coloursOf(this.colouring, look), background: look.paper,
      hover: look.ink, filter: this.kept(), selected: this.selected, size: sizeOf(data.n), opacity: opacityOf(data.n),
    });
    this.drawAxes();
  }

  drawAxes() {
    const ends = this.view.ends().map((pair, k) => pair.map((value) => this.centre[k] + value * this.unit));
    const [across, up] = ["across", "up"].map((way) => this.data.components[this.chosen[way]].name);
    this.axes(this.box.width, this.box.height, ...ends, across, up);
    this.tip.hide();
  }

  drawLegend() {
    legend(this.legend, this.colouring, this.look, this.only, (entry) => this.showOnly(entry));
  }

  drawSelected() {
    showSelected(this.below, this.data, this.selected, this.look, () => this.select([]));
  }

  colouringOf(name) {
    const { data } = this;
    const [kind, j] = name.split("-");
    if (kind === "cluster") return byLevel("group", data.clusters.names, data.clusters.codes, { all: true });
    if (kind === "confidence") return byNumber("confidence", data.confidence, [0, 1]);
    if (kind === "category") return byLevel(data.categories[j].name, data.categories[j].levels, data.categories[j].codes());
    if (kind === "column") return byNumber(data.columns[j].name, data.columns[j].values());
    return byLevel("rows", ["all rows"], new Int32Array(data.n));
  }

  colour(name) {
    this.colouring = this.colouringOf(name);
    this.only = null;
    this.draw();
    this.drawLegend();
    this.say(`Coloured by ${this.colouring.name}.`);
  }

  component(way, j) {
    this.chosen[way] = j;
    this.place();
    this.draw();
    this.whole();
    this.say(`${this.data.components[this.chosen.across].name} across, ${this.data.components[this.chosen.up].name} up.`);
  }

  // The rows of the one entry of the legend that is shown; null if all are.
  kept() {
    if (this.only === null) return null;
    const { places } = this.colouring;
    return Array.from(places.keys()).filter((i) => places[i] === this.only);
  }

  showOnly(entry) {
    this.only = entry;
    this.view.filter(this.kept());
    if (this.selected.length) this.view.select(this.selected);
    this.drawLegend();
    const shown = entry === null ? null : this.colouring.entries[entry];
    this.say(shown ? `Only ${shown.name}: ${count(shown.count, "row")}.` : "All rows.");
  }

  select(rows, tell = true) {
    this.selected = Array.from(rows).sort((a, b) => a - b);
    if (tell) this.view.select(this.selected);
    this.drawSelected();
    this.say(rows.length ? `${count(rows.length, "row")} selected.` : "Nothing is selected.");
  }

  around(line) {
    const [[x0, x1], [y0, y1]] = this.view.ends();
    const { width, height } = this.box;
    const polygon = line.map(([px, py]) => [x0 + ((x1 - x0) * px) / width, y1 - ((y1 - y0) * py) / height]);
    const [left, right] = extent(polygon.map(([x]) => x));
    const [bottom, top] = extent(polygon.map(([, y]) => y));
    const found = [];
    for (let i = 0; i < this.data.n; i++) {
      const [x, y] = [this.x[i], this.y[i]];
      if (x < left || x > right || y < bottom || y > top) continue;
      if (this.only !== null && this.colouring.places[i] !== this.only) continue;
      if (inside(polygon, x, y)) found.push(i);
    }
    this.select(found);
    this.lassoMode(false);
  }

  lassoMode(active) {
    this.inLasso = active;
    this.stage.classList.toggle("drawing", active);
    this.controls.lasso.setAttribute("aria-pressed", String(active));
  }

  zoom(factor) {
    this.view.show(...this.view.ends().map(([low, high]) => {
      const [middle, half] = [(low + high) / 2, ((high - low) / 2) * factor];
      return [middle - half, middle + half];
    }));
  }

  // Arrows move the view by a tenth, + and - zoom.
  key(event) {
    const step = { ArrowLeft: [-0.1, 0], ArrowRight: [0.1, 0], ArrowDown: [0, -0.1], ArrowUp: [0, 0.1] }[event.key];
    const factor = { "+": 0.6, "=": 0.6, "-": 1 / 0.6 }[event.key];
    if (event.ctrlKey || event.metaKey || event.altKey || !(step || factor)) return;
    event.preventDefault();
    if (factor) this.zoom(factor);
    else this.view.show(...this.view.ends().map(([low, high], k) => [low, high].map((end) => end + step[k] * (high - low))));
  }

  whole() {
    this.view.show(...this.home);
  }

  // Without the 1 % of the rows that are furthest from the middle (the median both ways).
  middle() {
    const [[x], [y]] = [quantiles(this.x, [0.5]), quantiles(this.y, [0.5])];
    const away = Float64Array.from(this.x, (value, i) => Math.hypot(value - x, this.y[i] - y));
    const most = Float64Array.from(away).sort()[Math.floor(0.99 * (away.length - 1))];
    this.view.show(...[this.x, this.y].map((values) => {
      const [low, high] = extent(values.filter((_, i) => away[i] <= most));
      const room = (high - low || 0.01) * (ROOM - 1);
      return [low - room, high + room];
    }));
  }

  over(i) {
    const [x, y] = this.view.place(i);
    const box = this.stage.getBoundingClientRect();
    const shown = ["across", "up"].map((way) => this.data.components[this.chosen[way]]);
    this.tip.show(factsOf(this.data, i, shown), box.left + x, box.top + y);
  }

  themed() {
    this.look = theme(this.root);
    this.draw();
    this.drawLegend();
    this.drawSelected();
  }

  resized() {
    const { width, height } = this.size();
    if (width === this.box.width && height === this.box.height) return;
    this.place();
    this.view.resize(width, height);
    this.draw();
    this.whole();
  }

  say(words) {
    this.said.textContent = words;
  }
}
