// What sets selected rows apart from all others.

function momentsOf(values, marks) {
  const sums = [0, 1].map(() => ({ n: 0, sum: 0 }));
  for (let i = 0; i < values.length; i++) {
    if (!Number.isFinite(values[i])) continue;
    const group = sums[marks[i]];
    group.n++;
    group.sum += values[i];
  }
  const n = sums[0].n + sums[1].n;
  const mean = (sums[0].sum + sums[1].sum) / n;
  let squares = 0;
  for (const value of values) if (Number.isFinite(value)) squares += (value - mean) ** 2;
  return { rest: sums[0], chosen: sums[1], deviation: Math.sqrt(squares / n) };
}

// Columns in which the means of selection and rest are furthest apart, in standard deviations of all rows.
export function columnsApart(columns, marks, most) {
  return columns
    .map((column) => {
      const { rest, chosen, deviation } = momentsOf(column.values(), marks);
      const apart = rest.n && chosen.n && deviation > 0 ? chosen.sum / chosen.n - rest.sum / rest.n : 0;
      return { column, apart: apart / (deviation || 1), mean: chosen.sum / chosen.n, rest: rest.sum / rest.n };
    })
    .filter(({ apart }) => Math.abs(apart) > 0)
    .sort((a, b) => Math.abs(b.apart) - Math.abs(a.apart))
    .slice(0, most);
}

// Levels by how much larger their share is in the selection than in all rows.
export function levelsApart(categories, rows, most) {
  const found = [];
  for (const { name, levels, codes } of categories) {
    const all = new Float64Array(levels.length);
    const mine = new Float64Array(levels.length);
    for (const code of codes()) if (code >= 0) all[code]++;
    for (const i of rows) if (codes()[i] >= 0) mine[codes()[i]]++;
    levels.forEach((level, k) => {
      const [share, overall] = [mine[k] / rows.length, all[k] / codes().length];
      if (share - overall > 0.05) found.push({ name, level, share, overall });
    });
  }
  return found.sort((a, b) => b.share - b.overall - (a.share - a.overall)).slice(0, most);
}
