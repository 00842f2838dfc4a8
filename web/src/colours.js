// What a point's colour means: a place in a list of colours, with a legend.
import { interpolateViridis, rgb } from "d3";
import { extent, quantiles } from "./numbers.js";

const PALETTE = 20;
const STEPS = 64;
const POOLED = "(other)"; // the level that rare ones were pooled into

const hex = (colour) => rgb(colour).formatHex();

// The theme's colours, read from the page so that they are those of all other charts.
export function theme(element) {
  const style = getComputedStyle(element);
  const named = (name) => hex(style.getPropertyValue(name).trim());
  const clusters = Array.from({ length: PALETTE }, (_, i) => named(`--c${i}`));
  const paper = named("--paper");
  return { clusters, paper, ink: named("--ink"), muted: named("--muted"), faint: named("--faint"), accent: named("--accent"),
    dark: rgb(paper).r < 128 };
}

// Beyond 20 the colours come again lighter, then darker: names in the legend tell them apart.
function ofCluster(look, i) {
  const base = rgb(look.clusters[i % PALETTE]);
  const round = Math.floor(i / PALETTE);
  if (!round) return base.formatHex();
  return (round % 2 ? base.brighter(0.9) : base.darker(0.9)).formatHex();
}

// Levels in the order given, or the most frequent if there are more than colours; the rest share one entry.
export function byLevel(name, levels, codes, { all = false } = {}) {
  const counts = new Array(levels.length).fill(0);
  let missing = 0;
  for (const code of codes) code < 0 ? missing++ : counts[code]++;
  const order = levels.map((_, i) => i);
  let own = order.filter((i) => all || counts[i] > 0);
  if (!all && own.length > PALETTE) {
    own = [...own].sort((a, b) => counts[b] - counts[a]).slice(0, PALETTE - 1).sort((a, b) => a - b);
  }
  const place = new Int32Array(levels.length).fill(own.length);
  own.forEach((level, i) => (place[level] = i));
  const grey = (look) => look.muted;
  const pooled = (level) => !all && levels[level] === POOLED;
  const entries = own.map((level, i) => ({ name: pooled(level) ? "other" : levels[level], count: counts[level],
    colour: pooled(level) ? grey : (look) => ofCluster(look, i) }));
  const others = codes.length - missing - entries.reduce((sum, entry) => sum + entry.count, 0);
  if (others) entries.push({ name: `${levels.length - own.length} other levels`, count: others, colour: grey });
  const blank = entries.length;
  if (missing) entries.push({ name: all ? "in no group" : "missing", count: missing, colour: grey });
  const places = Uint16Array.from(codes, (code) => (code < 0 ? blank : place[code]));
  return { kind: "levels", name, places, entries };
}

// Numbers on a scale that all can tell apart and that keeps its order in grey; its ends are the middle 98 % if a few values
// lie far out, and the legend says so.
export function byNumber(name, values, whole = null) {
  const finite = values.filter(Number.isFinite);
  let [low, high] = whole ?? extent(finite);
  let beyond = false;
  if (!whole) {
    const [first, last] = quantiles(finite, [0.01, 0.99]);
    if (high - low > 3 * (last - first) && last > first) [low, high, beyond] = [first, last, true];
  }
  const span = high - low || 1;
  const place = (value) =>
    Number.isFinite(value) ? Math.max(0, Math.min(STEPS - 1, Math.floor((STEPS * (value - low)) / span))) : STEPS;
  return { kind: "scale", name, low, high, beyond, missing: values.length - finite.length,
    places: Uint16Array.from(values, place) };
}

// The ends of the scale that would vanish on the paper are left out.
export const onScale = (look, share) => hex(interpolateViridis(look.dark ? 0.18 + 0.82 * share : 0.93 * (1 - share)));

export function coloursOf(colouring, look) {
  if (colouring.kind === "levels") return colouring.entries.map((entry) => entry.colour(look));
  return [...Array.from({ length: STEPS }, (_, i) => onScale(look, i / (STEPS - 1))), look.muted];
}
