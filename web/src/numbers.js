// How numbers are written, and simple figures of many of them.

const exact = new Intl.NumberFormat("en", { maximumSignificantDigits: 6 }); // single precision has about seven digits
const rough = new Intl.NumberFormat("en", { maximumSignificantDigits: 4 });
const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });

export function count(n, word) {
  return `${whole.format(n)} ${word}${n === 1 ? "" : "s"}`;
}

// A value as it is in the data.
export function number(value, format = exact) {
  if (!Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-3 || size >= 1e9)) return value.toExponential(3).replace("e+", "e");
  return Number.isInteger(value) ? whole.format(value) : format.format(value);
}

// A figure that was worked out, such as a mean or a score.
export const about = (value) => number(value, rough);

export const percent = (share) => (share > 0 && share < 0.01 ? "<1 %" : `${Math.round(100 * share)} %`);

export function extent(values) {
  let low = Infinity;
  let high = -Infinity;
  for (const value of values) {
    if (value < low) low = value;
    if (value > high) high = value;
  }
  return low <= high ? [low, high] : [0, 0];
}

// Quantiles of the finite values, from at most 50,000 of them.
export function quantiles(values, shares) {
  const step = Math.max(1, Math.floor(values.length / 50000));
  const some = [];
  for (let i = 0; i < values.length; i += step) if (Number.isFinite(values[i])) some.push(values[i]);
  if (!some.length) return shares.map(() => NaN);
  const sorted = Float64Array.from(some).sort();
  return shares.map((share) => sorted[Math.round(share * (sorted.length - 1))]);
}
