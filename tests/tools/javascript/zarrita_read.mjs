// The elements of each array, by zarrita: NODE_PATH is ignored by modules, so its place comes first.
import { pathToFileURL } from "node:url";

const [place, ...paths] = process.argv.slice(2);
const module = (name) => import(pathToFileURL(`${place}/node_modules/${name}`));
const zarr = await module("zarrita/dist/src/index.js");
const { default: FileSystemStore } = await module("@zarrita/storage/dist/src/fs.js");
const found = [];
for (const path of paths) {
    const array = await zarr.open(new FileSystemStore(path), { kind: "array" });
    const { data, shape } = await zarr.get(array);
    found.push({ shape, data: Array.from(data, Number) });
}
console.log(JSON.stringify(found));
