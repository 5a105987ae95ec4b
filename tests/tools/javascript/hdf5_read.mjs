// The elements and units of each array, by jsfive or h5wasm. Arguments: which, where it is installed, and
// pairs of a file and a path in it.
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const [library, place, ...pairs] = process.argv.slice(2);
const entries = { jsfive: "dist/esm/index.mjs", h5wasm: "dist/node/hdf5_hl.js" };
const read = await import(pathToFileURL(`${place}/node_modules/${library}/${entries[library]}`));
if (library === "h5wasm") await read.ready;

function open(path) {
    if (library === "h5wasm") return new read.File(path, "r");
    const bytes = readFileSync(path);
    return new read.File(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length));
}

const found = [];
for (let at = 0; at < pairs.length; at += 2) {
    const dataset = open(pairs[at]).get(pairs[at + 1]);
    const { units } = dataset.attrs;
    // jsfive leaves the zero in that ends a text.
    const text = String(units.value ?? units).replace(/\0$/, "");
    found.push({ shape: dataset.shape, data: Array.from(dataset.value, Number), units: text });
}
console.log(JSON.stringify(found));
