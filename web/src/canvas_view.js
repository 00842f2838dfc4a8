// Points on a plain canvas, for browsers without WebGL: the same methods as gl_view.js.

export function canvasView(canvas, { width, height, on }) {
  const context = canvas.getContext("2d");
  let [w, h] = [width, height];
  let centre = [0, 0];
  let zoom = 1;
  let shown = null;
  let waiting = false;

  const unit = () => (h / 2) * zoom; // pixels
  const screenX = (x) => w / 2 + (x - centre[0]) * unit();
  const screenY = (y) => h / 2 - (y - centre[1]) * unit();
  const ends = () => [
    [centre[0] - w / 2 / unit(), centre[0] + w / 2 / unit()],
    [centre[1] - h / 2 / unit(), centre[1] + h / 2 / unit()],
  ];

  function fit() {
    const ratio = window.devicePixelRatio || 1;
    canvas.width = Math.round(w * ratio);
    canvas.height = Math.round(h * ratio);
    canvas.style.width = `${w}px`;
    canvas.style.height = `${h}px`;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
  }

  function paint() {
    waiting = false;
    context.clearRect(0, 0, w, h);
    if (!shown) return;
    const { x, y, places, colours, chosen, kept, size, opacity } = shown;
    const dot = (i, alpha, side) => {
      const [px, py] = [screenX(x[i]), screenY(y[i])];
      if (px < -9 || py < -9 || px > w + 9 || py > h + 9) return;
      context.globalAlpha = alpha;
      context.fillStyle = colours[places[i]];
      if (side > 3) {
        context.beginPath();
        context.arc(px, py, side / 2, 0, 7);
        context.fill();
      } else context.fillRect(px - side / 2, py - side / 2, side, side);
    };
    for (let i = 0; i < x.length; i++) {
      if (!kept || kept[i]) dot(i, chosen ? opacity * 0.2 : opacity, size);
    }
    if (chosen) for (let i = 0; i < x.length; i++) if (chosen[i] && (!kept || kept[i])) dot(i, 1, size + 1);
  }

  function later() {
    if (!waiting) requestAnimationFrame(paint);
    waiting = true;
  }

  function moved() {
    later();
    on.view(...ends());
  }

  function marks(rows) {
    if (!rows || !shown) return null;
    const out = new Uint8Array(shown.x.length);
    for (const i of rows) out[i] = 1;
    return out;
  }

  function nearest(px, py) {
    if (!shown) return -1;
    let best = Math.max(shown.size, 6) + 4;
    let found = -1;
    for (let i = 0; i < shown.x.length; i++) {
      const away = Math.hypot(screenX(shown.x[i]) - px, screenY(shown.y[i]) - py);
      if (away < best && (!shown.kept || shown.kept[i])) [best, found] = [away, i];
    }
    return found;
  }

  let held = null;
  let over = -1;
  canvas.addEventListener("pointerdown", (event) => {
    if (event.pointerType !== "touch") held = { x: event.offsetX, y: event.offsetY, moved: false };
  });
  canvas.addEventListener("pointermove", (event) => {
    if (held && event.buttons) {
      const [dx, dy] = [event.offsetX - held.x, event.offsetY - held.y];
      if (!held.moved && Math.hypot(dx, dy) < 4) return;
      centre = [centre[0] - dx / unit(), centre[1] + dy / unit()];
      held = { x: event.offsetX, y: event.offsetY, moved: true };
      moved();
      return;
    }
    const i = nearest(event.offsetX, event.offsetY);
    if (i === over) return;
    over = i;
    i < 0 ? on.out() : on.over(i);
  });
  canvas.addEventListener("pointerleave", () => {
    over = -1;
    on.out();
  });
  canvas.addEventListener("click", (event) => {
    if (!held?.moved) {
      const i = nearest(event.offsetX, event.offsetY);
      on.select(i < 0 ? [] : [i]);
    }
    held = null;
  });
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    const factor = Math.exp(-event.deltaY / 400);
    const [x, y] = [centre[0] + (event.offsetX - w / 2) / unit(), centre[1] - (event.offsetY - h / 2) / unit()];
    zoom *= factor;
    centre = [x - (event.offsetX - w / 2) / unit(), y + (event.offsetY - h / 2) / unit()];
    moved();
  }, { passive: false });
  fit();

  return {
    async draw(points) {
      shown = { ...points };
      shown.kept = marks(points.filter);
      shown.chosen = points.selected.length ? marks(points.selected) : null;
      later();
    },
    select(rows) {
      if (shown) shown.chosen = rows.length ? marks(rows) : null;
      later();
    },
    filter(rows) {
      if (shown) shown.kept = marks(rows);
      later();
    },
    show([x0, x1], [y0, y1]) {
      centre = [(x0 + x1) / 2, (y0 + y1) / 2];
      zoom = 1 / Math.max((y1 - y0) / 2, ((x1 - x0) * h) / w / 2, 1e-9);
      moved();
    },
    ends,
    place: (i) => [screenX(shown.x[i]), screenY(shown.y[i])],
    resize(newWidth, newHeight) {
      [w, h] = [newWidth, newHeight];
      fit();
      later();
    },
  };
}
