// Renames are stored as a deletion and an addition (D14); here they are found again by likeness.

import { hunksBetween } from "./lines.ts";
import type { FilePatch } from "./patch.ts";

/** As git: half of the lines must be the same. */
const ALIKE = 0.5;
/** Beyond this many pairs only equal contents are looked for; likeness costs each pair. */
const MOST_PAIRS = 2500;
const LINES_COMPARED = 5000;

/** The same files, with each deletion that reads like an addition told as one renamed file. */
export function withRenames(files: readonly FilePatch[]): readonly FilePatch[] {
  const gone = files.filter((file) => file.status === "deleted");
  const made = files.filter((file) => file.status === "added");
  if (!gone.length || !made.length) return files;
  const pairs = paired(gone, made);
  const old = new Set(pairs.values());
  return files.flatMap((file) => {
    const before = pairs.get(file);
    if (before) return [renamed(before, file)];
    return old.has(file) ? [] : [file];
  });
}

function paired(gone: readonly FilePatch[], made: readonly FilePatch[]): Map<FilePatch, FilePatch> {
  const found: { likeness: number; before: FilePatch; after: FilePatch }[] = [];
  const compares = gone.length * made.length <= MOST_PAIRS;
  for (const after of made) {
    for (const before of gone) {
      const likeness = sameContent(before, after) ? 1 : compares ? likenessOf(before, after) : 0;
      if (likeness >= ALIKE) found.push({ likeness, before, after });
    }
  }
  const named = ({ before, after }: (typeof found)[number]) => baseName(before.path) === baseName(after.path);
  found.sort((a, b) => b.likeness - a.likeness || Number(named(b)) - Number(named(a)));
  const pairs = new Map<FilePatch, FilePatch>();
  const taken = new Set<FilePatch>();
  for (const { before, after } of found) {
    if (pairs.has(after) || taken.has(before)) continue;
    pairs.set(after, before);
    taken.add(before);
  }
  return pairs;
}

const baseName = (path: string): string => path.slice(path.lastIndexOf("/") + 1);

function sameContent(before: FilePatch, after: FilePatch): boolean {
  return before.oldId !== "" && before.oldId === after.newId;
}

function likenessOf(before: FilePatch, after: FilePatch): number {
  if (before.binary || after.binary) return 0;
  const [old, fresh] = [before.removed, after.added];
  if (Math.max(old, fresh) > LINES_COMPARED || 2 * Math.min(old, fresh) < ALIKE * (old + fresh)) return 0;
  const counts = new Map<string, number>();
  for (const line of contents(before)) counts.set(line, (counts.get(line) ?? 0) + 1);
  let shared = 0;
  for (const line of contents(after)) {
    const left = counts.get(line) ?? 0;
    if (left > 0) {
      shared += 1;
      counts.set(line, left - 1);
    }
  }
  return old + fresh ? (2 * shared) / (old + fresh) : 0;
}

const contents = (file: FilePatch): string[] =>
  file.hunks.flatMap((hunk) => hunk.lines.filter((line) => !line.startsWith("\\")).map((line) => line.slice(1)));

function renamed(before: FilePatch, after: FilePatch): FilePatch {
  const isText = !before.binary && !after.binary;
  const hunks = isText ? hunksBetween(contents(before), contents(after)) : [];
  let [added, removed] = [0, 0];
  for (const hunk of hunks) {
    for (const line of hunk.lines) {
      if (line.startsWith("+")) added += 1;
      else if (line.startsWith("-")) removed += 1;
    }
  }
  return {
    ...after,
    from: before.path,
    status: "renamed",
    oldId: before.oldId,
    oldMode: before.oldMode,
    binary: !isText,
    whole: true,
    hunks,
    added,
    removed,
  };
}
