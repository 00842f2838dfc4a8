// The frame of the plot: ticks, faint lines and names, following zoom and pan.
import { axisBottom, axisLeft, scaleLinear, select } from "d3";

export const MARGIN = { left: 54, right: 14, top: 12, bottom: 44 };

export function axes(svg) {
  const frame = select(svg);
  const layers = ["lines-x", "lines-y", "x", "y"].map((name) => frame.append("g").attr("class", name));
  const below = frame.append("text").attr("class", "name").attr("text-anchor", "middle");
  const beside = frame.append("text").attr("class", "name").attr("text-anchor", "middle");

  return function draw(width, height, xs, ys, xName, yName) {
    const { left, top } = MARGIN;
    const x = scaleLinear(xs, [left, left + width]);
    const y = scaleLinear(ys, [top + height, top]);
    frame.attr("width", left + width + MARGIN.right).attr("height", top + height + MARGIN.bottom);
    const across = Math.max(2, Math.round(width / 90));
    const up = Math.max(2, Math.round(height / 70));
    layers[0].attr("transform", `translate(0,${top + height})`).call(axisBottom(x).ticks(across).tickSize(-height).tickFormat(""));
    layers[1].attr("transform", `translate(${left},0)`).call(axisLeft(y).ticks(up).tickSize(-width).tickFormat(""));
    layers[2].attr("transform", `translate(0,${top + height})`).call(axisBottom(x).ticks(across).tickSize(0).tickPadding(8));
    layers[3].attr("transform", `translate(${left},0)`).call(axisLeft(y).ticks(up).tickSize(0).tickPadding(8));
    below.attr("x", left + width / 2).attr("y", top + height + 38).text(xName);
    beside.attr("transform", `translate(14,${top + height / 2}) rotate(-90)`).text(yName);
  };
}
