// Bundles src/ into the scripts that report pages contain, and writes down the licences of what is inside.
import { build } from "esbuild";
import { createHash } from "node:crypto";
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const assets = join(here, "../src/foldwise/report/assets");
const common = {
  bundle: true, minify: true, format: "iife", target: "es2020", charset: "ascii", legalComments: "none",
  absWorkingDir: here, write: false, metafile: true, logLevel: "warning",
};

// The notices of the packages that really are in the bundle, each text once.
function licences(metafile) {
  const folders = new Set();
  for (const [file, { bytesInOutput }] of Object.values(metafile.outputs).flatMap((out) => Object.entries(out.inputs))) {
    const found = bytesInOutput > 0 && file.match(/^node_modules\/((?:@[^/]+\/)?[^/]+)\//);
    if (found) folders.add(found[1]);
  }
  const byText = new Map();
  for (const name of [...folders].sort()) {
    const folder = join(here, "node_modules", name);
    const { version, license, author } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
    const file = readdirSync(folder).find((one) => /^(licen[cs]e|copying)/i.test(one));
    const holder = typeof author === "string" ? author : author?.name;
    const text = file ? readFileSync(join(folder, file), "utf8").trim() : `Copyright ${holder}. Licence: ${license}.`;
    const key = text.replace(/\s+/g, " ");
    if (!byText.has(key)) byText.set(key, { text, names: [] });
    byText.get(key).names.push(`${name} ${version} (${license})`);
  }
  const parts = [...byText.values()].map(({ text, names }) => `${names.join(", ")}\n\n${text.replace(/\r/g, "")}`);
  return `This script contains the following packages.\n\n${parts.join(`\n\n${"-".repeat(80)}\n\n`)}\n`;
}

for (const name of ["theme", "sort", "page"]) {
  const { outputFiles, metafile } = await build({ ...common, entryPoints: [`src/${name}.js`] });
  let text = outputFiles[0].text.trim();
  if (name === "page") {
    const notices = licences(metafile);
    writeFileSync(join(assets, "page-licences.txt"), notices);
    text = `/*! ${notices.replaceAll("*/", "* /").replace(/[^\x00-\x7f]/g, (c) => (c === "’" ? "'" : c === "©" ? "(c)" : "?"))}*/\n${text}`;
  }
  if (/<\/script|<!--/i.test(text)) throw new Error(`${name}.js would end its script element early`);
  writeFileSync(join(assets, `${name}.js`), `${text}\n`);
  console.log(`${name}.js: ${(text.length / 1000).toFixed(1)} kB`);
}

// What the scripts were built from, so that a test without Node can tell whether they are up to date.
const digest = createHash("sha256");
for (const file of ["build.mjs", "package-lock.json", ...readdirSync(join(here, "src")).sort().map((name) => `src/${name}`)]) {
  digest.update(file).update(readFileSync(join(here, file)));
}
writeFileSync(join(assets, "sources.sha256"), `${digest.digest("hex")}\n`);
