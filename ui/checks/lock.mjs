// npm locks only the optional packages that its registry showed on the day; one that is missing
// leaves users of another system without a bundler. Addresses would tie users to one registry.
import { readFileSync } from "node:fs";

const { packages } = JSON.parse(readFileSync(new URL("../package-lock.json", import.meta.url), "utf8"));

const missing = Object.entries(packages).flatMap(([place, entry]) =>
  Object.keys(entry.optionalDependencies ?? {})
    .filter((name) => !packages[`node_modules/${name}`] && !packages[`${place}/node_modules/${name}`])
    .map((name) => `package-lock.json lacks ${name}, which ${place} wants on some systems`),
);
const addressed = Object.entries(packages)
  .filter(([, entry]) => entry.resolved)
  .map(([place]) => `package-lock.json holds an address for ${place}: set omit-lockfile-registry-resolved`);
const unverified = Object.entries(packages)
  .filter(([place, entry]) => place && !entry.integrity)
  .map(([place]) => `package-lock.json has no hash for ${place}`);

const problems = [...missing, ...addressed, ...unverified];
for (const problem of problems) console.error(problem);
if (problems.length) process.exit(1);
console.log(`${Object.keys(packages).length - 1} locked packages, complete for every system`);
