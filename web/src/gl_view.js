// Points by WebGL (regl-scatterplot), in units in which the height of the first view is from -1 to 1.
import { scaleLinear } from "d3";
import createScatterplot from "regl-scatterplot";

const NEEDED = ["OES_texture_float", "OES_element_index_uint", "WEBGL_color_buffer_float", "EXT_float_blend"];

export function glWorks() {
  try {
    const gl = document.createElement("canvas").getContext("webgl");
    const works = Boolean(gl) && NEEDED.every((name) => gl.getExtension(name));
    gl?.getExtension("WEBGL_lose_context")?.loseContext();
    return works;
  } catch {
    return false;
  }
}

export function glView(canvas, { width, height, size, opacity, on }) {
  const plot = createScatterplot({
    canvas, width, height, pointSize: size, pointSizeSelected: 1, pointOutlineWidth: 0, opacity, opacityInactiveScale: 0.25,
    xScale: scaleLinear([-1, 1], [0, 1]), yScale: scaleLinear([-1, 1], [0, 1]), colorBy: "valueA",
    spatialIndexUseWorker: false, lassoOnLongPress: false, actionKeyMap: {}, deselectOnEscape: false, deselectOnDblClick: false,
  });
  let ends = [[-width / height, width / height], [-1, 1]];
  plot.subscribe("pointover", (i) => on.over(i));
  plot.subscribe("pointout", () => on.out());
  plot.subscribe("select", ({ points }) => on.select(points));
  plot.subscribe("deselect", () => on.select([]));
  plot.subscribe("view", ({ xScale, yScale }) => {
    ends = [xScale.domain(), yScale.domain()];
    on.view(...ends);
  });

  // A drawing that is asked for while another one is under way waits for it; of several that wait only the last is drawn.
  let busy = false;
  let waiting = null;
  async function draw(points) {
    if (busy) {
      waiting = points;
      return;
    }
    busy = true;
    const { x, y, places, colours, background, hover, filter, selected, size: pointSize, opacity: shown } = points;
    plot.set({ pointColor: colours, pointColorActive: colours, pointColorHover: hover, backgroundColor: background,
      pointSize, opacity: shown });
    await plot.draw({ x, y, z: places }, { zDataType: "categorical", filter: filter ?? undefined, select: selected });
    busy = false;
    if (waiting) {
      const next = waiting;
      waiting = null;
      await draw(next);
    }
  }

  return {
    draw,
    select: (rows) => (rows.length ? plot.select(rows, { preventEvent: true }) : plot.deselect({ preventEvent: true })),
    filter: (rows) => (rows ? plot.filter(rows, { preventEvent: true }) : plot.unfilter({ preventEvent: true })),
    show: ([x0, x1], [y0, y1]) => plot.zoomToArea({ x: x0, y: y0, width: x1 - x0, height: y1 - y0 }),
    ends: () => ends,
    place: (i) => plot.getScreenPosition(i),
    resize: (w, h) => plot.set({ width: w, height: h }),
  };
}
