// The points as report/scatter.py packs them.

function bytes(text) {
  const raw = atob(text);
  const out = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) out[i] = raw.charCodeAt(i);
  return out.buffer;
}

// Whole numbers of 8, 16 or 32 bits; all machines that show pages are little-endian, as the numbers are.
function whole(piece) {
  if (piece.u8 !== undefined) return new Uint8Array(bytes(piece.u8));
  if (piece.u16 !== undefined) return new Uint16Array(bytes(piece.u16));
  return new Uint32Array(bytes(piece.u32));
}

function once(compute) {
  let value;
  return () => (value ??= compute());
}

function numbers(piece) {
  if (piece.f4 !== undefined) return new Float32Array(bytes(piece.f4));
  const list = new Float32Array(bytes(piece.list));
  return Float32Array.from(whole(piece), (place) => list[place]);
}

function ids(piece) {
  if (piece.texts) return { name: piece.name, of: (i) => piece.texts[i] };
  const values = piece.u32 !== undefined ? whole(piece) : Uint32Array.from(whole(piece));
  if (piece.first !== undefined) {
    let sum = piece.first;
    for (let i = 0; i < values.length; i++) values[i] = sum += values[i];
  }
  return { name: piece.name, of: (i) => String(values[i]) };
}

// Codes count from 0; -1 is missing.
const codes = (piece) => Int32Array.from(whole(piece), (code) => code - 1);

export function decode(told) {
  return {
    n: told.n,
    total: told.total,
    components: told.components.map((piece) => ({
      name: piece.name,
      values: once(() => Float64Array.from(whole(piece), (value) => piece.offset + piece.scale * value)),
    })),
    clusters: told.labels ? { names: told.clusters, codes: codes(told.labels) } : null,
    confidence: told.confidence
      ? Float32Array.from(whole(told.confidence), (value) => (value === 255 ? NaN : value / 250))
      : null,
    categories: told.categories.map((piece) => ({ name: piece.name, levels: piece.levels, codes: once(() => codes(piece)) })),
    columns: told.columns.map((piece) => ({ name: piece.name, values: once(() => numbers(piece)) })),
    ids: told.ids.map(ids),
  };
}
