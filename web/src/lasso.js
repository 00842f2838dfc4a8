// A line drawn around points by mouse, pen or finger, over any view; the same whether WebGL or a canvas draws them.

const SVG = "http://www.w3.org/2000/svg";

export function inside(polygon, x, y) {
  let odd = false;
  for (let i = 0, j = polygon.length - 1; i < polygon.length; j = i++) {
    const [xi, yi] = polygon[i];
    const [xj, yj] = polygon[j];
    if (yi > y !== yj > y && x < ((xj - xi) * (y - yi)) / (yj - yi) + xi) odd = !odd;
  }
  return odd;
}

// `wanted` says whether a press starts a lasso; `done` gets the places of the line, in pixels.
export function lasso(stage, { wanted, done }) {
  const svg = document.createElementNS(SVG, "svg");
  const path = document.createElementNS(SVG, "polygon");
  svg.setAttribute("class", "lasso");
  svg.setAttribute("aria-hidden", "true");
  svg.append(path);
  stage.append(svg);
  let line = null;

  const at = (event) => {
    const box = stage.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };
  const stop = (event) => {
    event.stopPropagation();
    event.preventDefault();
  };
  // Those who draw the points see nothing of a press that is ours.
  const capture = { capture: true, passive: false };
  stage.addEventListener("pointerdown", (event) => {
    if (event.button !== 0 || !wanted(event)) return;
    line = [at(event)];
    stage.setPointerCapture(event.pointerId);
    stage.focus({ preventScroll: true });
    stop(event);
  }, capture);
  stage.addEventListener("mousedown", (event) => {
    if (line) stop(event);
  }, capture);
  stage.addEventListener("pointermove", (event) => {
    if (!line) return;
    line.push(at(event));
    path.setAttribute("points", line.map(([x, y]) => `${x.toFixed(1)},${y.toFixed(1)}`).join(" "));
    stop(event);
  }, capture);
  const end = (event) => {
    if (!line) return;
    const drawn = line;
    line = null;
    path.removeAttribute("points");
    swallow = true;
    setTimeout(() => (swallow = false), 50);
    stop(event);
    if (event.type === "pointerup" && drawn.length > 2) done(drawn);
  };
  let swallow = false;
  stage.addEventListener("pointerup", end, capture);
  stage.addEventListener("pointercancel", end, capture);
  for (const kind of ["click", "mouseup"]) {
    stage.addEventListener(kind, (event) => {
      if (swallow) stop(event);
    }, capture);
  }
}
