// What a revision changed since an earlier attempt. Both patches start from the same file wherever
// its content has the same name; then each tells which of its lines it takes away and what it puts
// there, and that is enough to set one result against the other, without either file.

import { type Step, hunksOf, stepsBetween } from "./lines.ts";
import { type FilePatch, type Hunk, fingerprint } from "./patch.ts";

export interface Since {
  readonly files: readonly FilePatch[];
  /** Files whose ground has moved, so that their whole change is shown. */
  readonly moved: readonly string[];
}

export function changedSince(before: readonly FilePatch[], now: readonly FilePatch[]): Since {
  const old = new Map(before.map((file) => [file.path, file]));
  const moved: string[] = [];
  const files: FilePatch[] = [];
  for (const file of now) {
    const earlier = old.get(file.path);
    old.delete(file.path);
    if (!earlier) files.push(file);
    else if (fingerprint(earlier) !== fingerprint(file)) {
      const between = sameGround(earlier, file) ? difference(earlier, file) : null;
      if (!between) moved.push(file.path);
      files.push(between ?? file);
    }
  }
  for (const gone of old.values()) files.push(takenBack(gone));
  return { files, moved };
}

/** Without names of contents there is nothing but trust in the line numbers. */
const sameGround = (a: FilePatch, b: FilePatch): boolean => a.oldId === b.oldId && !a.binary && !b.binary;

/** What an attempt put into one file: the lines taken from the base, and those put before one. */
interface Edit {
  readonly known: Map<number, string>;
  readonly gone: Set<number>;
  readonly put: Map<number, string[]>;
  /** Stretches of base lines that are known, from and up to but without. */
  readonly ranges: (readonly [number, number])[];
}

function editOf(hunks: readonly Hunk[]): Edit {
  const edit: Edit = { known: new Map(), gone: new Set(), put: new Map(), ranges: [] };
  for (const hunk of hunks) {
    let at = hunk.oldCount ? hunk.oldStart : hunk.oldStart + 1;
    const start = at;
    for (const line of hunk.lines) {
      const text = line.slice(1);
      if (line.startsWith("+")) edit.put.set(at, [...(edit.put.get(at) ?? []), text]);
      else if (!line.startsWith("\\")) {
        edit.known.set(at, text);
        if (line.startsWith("-")) edit.gone.add(at);
        at += 1;
      }
    }
    edit.ranges.push([start, at]);
  }
  return edit;
}

function difference(before: FilePatch, now: FilePatch): FilePatch | null {
  const [a, b] = [editOf(before.hunks), editOf(now.hunks)];
  const hunks: Hunk[] = [];
  let [shiftA, shiftB, reached] = [0, 0, 0];
  for (const [from, to] of joined([...a.ranges, ...b.ranges])) {
    if (from < reached) return null;
    const [old, fresh] = [result(a, b, from, to), result(b, a, from, to)];
    if (!old || !fresh) return null;
    const steps: readonly Step[] = stepsBetween(old, fresh);
    hunks.push(...hunksOf(steps, from + shiftA, from + shiftB));
    shiftA += old.length - (to - from);
    shiftB += fresh.length - (to - from);
    reached = to;
  }
  const numbered = hunks.map((hunk, index) => ({ ...hunk, number: index + 1 }));
  return { ...now, status: "modified", oldId: before.newId, oldMode: before.newMode, hunks: numbered, whole: true, ...counts(numbered) };
}

function joined(ranges: readonly (readonly [number, number])[]): readonly (readonly [number, number])[] {
  const sorted = [...ranges].sort((x, y) => x[0] - y[0] || x[1] - y[1]);
  const result: [number, number][] = [];
  for (const [from, to] of sorted) {
    const last = result.at(-1);
    if (last && from <= last[1]) last[1] = Math.max(last[1], to);
    else result.push([from, to]);
  }
  return result;
}

/** The lines of a stretch after an edit; what it does not show is as the other one shows it. */
function result(edit: Edit, other: Edit, from: number, to: number): readonly string[] | null {
  const lines: string[] = [];
  for (let at = from; at <= to; at += 1) {
    lines.push(...(edit.put.get(at) ?? []));
    if (at === to || edit.gone.has(at)) continue;
    const text = edit.known.get(at) ?? other.known.get(at);
    if (text === undefined) return null;
    lines.push(text);
  }
  return lines;
}

/** A file that the later attempt leaves alone: what the earlier one did, the other way round. */
function takenBack(file: FilePatch): FilePatch {
  const hunks = file.hunks.map((hunk) => ({
    ...hunk,
    oldStart: hunk.newStart,
    oldCount: hunk.newCount,
    newStart: hunk.oldStart,
    newCount: hunk.oldCount,
    lines: turned(hunk.lines),
  }));
  const status = file.status === "added" ? "deleted" : file.status === "deleted" ? "added" : "modified";
  return {
    ...file,
    status,
    oldId: file.newId,
    newId: file.oldId,
    oldMode: file.newMode,
    newMode: file.oldMode,
    hunks,
    added: file.removed,
    removed: file.added,
    whole: true,
  };
}

/** Every block with what it took away and what it put there exchanged, deletions first as always. */
function turned(lines: readonly string[]): readonly string[] {
  const result: string[] = [];
  let [gone, put]: [string[], string[]] = [[], []];
  const flush = (): void => {
    result.push(...gone, ...put);
    [gone, put] = [[], []];
  };
  let last: string[] = result;
  for (const line of lines) {
    if (line.startsWith("-")) (last = put).push(`+${line.slice(1)}`);
    else if (line.startsWith("+")) (last = gone).push(`-${line.slice(1)}`);
    else if (line.startsWith("\\")) last.push(line);
    else {
      flush();
      (last = result).push(line);
    }
  }
  flush();
  return result;
}

function counts(hunks: readonly Hunk[]): { added: number; removed: number } {
  const signs = hunks.flatMap((hunk) => hunk.lines.map((line) => line.charAt(0)));
  return { added: signs.filter((sign) => sign === "+").length, removed: signs.filter((sign) => sign === "-").length };
}
