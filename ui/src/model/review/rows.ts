// What is drawn of a patch, one row after another, so that only the rows in view cost anything.

import { type FilePatch, type Hunk, changesMode } from "./patch.ts";
import { type Span, aligned, wordMarks } from "./wordDiff.ts";

export type Side = "old" | "new";

export interface Line {
  readonly sign: " " | "-" | "+";
  readonly text: string;
  /** Counted from 1; 0 on the side where it does not exist. */
  readonly old: number;
  readonly fresh: number;
  /** Its place among the lines of its hunk. */
  readonly index: number;
  /** The file's last line, and nothing ends it. */
  readonly open?: true;
}

interface InFile {
  readonly file: number;
  /** The same from one drawing to the next. */
  readonly key: string;
}

export type Row =
  | (InFile & { readonly kind: "file" })
  | (InFile & { readonly kind: "hunk"; readonly hunk: Hunk })
  | (InFile & { readonly kind: "mode" })
  | (InFile & { readonly kind: "content"; readonly why: "binary" | "same" | "empty" | "large" })
  | (InFile & { readonly kind: "line"; readonly hunk: number; readonly line: Line })
  | (InFile & { readonly kind: "pair"; readonly hunk: number; readonly left?: Line; readonly right?: Line })
  | (InFile & { readonly kind: "thread"; readonly place: Place });

export interface Place {
  readonly path: string;
  readonly side: Side;
  readonly line: number;
}

export const placeKey = ({ path, side, line }: Place): string => `${side}:${line}:${path}`;

export interface View {
  readonly split: boolean;
  readonly folded: ReadonlySet<string>;
  /** Where something is said, by `placeKey`. */
  readonly threads: ReadonlySet<string>;
  /** Files so large that they are drawn only when asked for. */
  readonly opened: ReadonlySet<string>;
}

/** Beyond it a file is folded until somebody wants it: nobody reads a lock file. */
export const LARGE_FILE = 30_000;

/** Larger blocks stand beside each other line by line: all rows are made before any is drawn. */
const FEW_PAIRS = 64;

export function rowsOf(files: readonly FilePatch[], view: View): readonly Row[] {
  const rows: Row[] = [];
  files.forEach((file, index) => {
    rows.push({ kind: "file", file: index, key: `f${index}` });
    if (!view.folded.has(file.path)) addFile(rows, file, index, view);
  });
  return rows;
}

function addFile(rows: Row[], file: FilePatch, index: number, view: View): void {
  if (changesMode(file)) rows.push({ kind: "mode", file: index, key: `f${index}m` });
  if (file.binary) {
    rows.push({ kind: "content", file: index, key: `f${index}b`, why: "binary" });
    return;
  }
  if (!file.hunks.length && !changesMode(file)) {
    const why = file.status === "renamed" ? "same" : "empty";
    rows.push({ kind: "content", file: index, key: `f${index}e`, why });
  }
  if (file.added + file.removed > LARGE_FILE && !view.opened.has(file.path)) {
    rows.push({ kind: "content", file: index, key: `f${index}l`, why: "large" });
    return;
  }
  for (const hunk of file.hunks) {
    rows.push({ kind: "hunk", file: index, key: `f${index}h${hunk.number}`, hunk });
    const lines = linesOf(hunk);
    if (view.split) addPairs(rows, lines, file, index, hunk.number, view.threads);
    else addLines(rows, lines, file, index, hunk.number, view.threads);
  }
}

function addLines(rows: Row[], lines: readonly Line[], file: FilePatch, index: number, hunk: number, threads: View["threads"]): void {
  lines.forEach((line, n) => {
    rows.push({ kind: "line", file: index, key: `f${index}h${hunk}l${n}`, hunk, line });
    addThreads(rows, file, index, threads, line.old, line.fresh, line.sign);
  });
}

function addThreads(rows: Row[], file: FilePatch, index: number, threads: View["threads"], old: number, fresh: number, sign: Line["sign"]): void {
  if (!threads.size) return;
  const places: Place[] = [];
  if (sign !== "+" && old) places.push({ path: file.path, side: "old", line: old });
  if (sign !== "-" && fresh) places.push({ path: file.path, side: "new", line: fresh });
  for (const place of places) {
    if (threads.has(placeKey(place))) {
      rows.push({ kind: "thread", file: index, key: `f${index}t${place.side}${place.line}`, place });
    }
  }
}

function addPairs(rows: Row[], lines: readonly Line[], file: FilePatch, index: number, hunk: number, threads: View["threads"]): void {
  let n = 0;
  const add = (left: Line | undefined, right: Line | undefined): void => {
    rows.push({
      kind: "pair",
      file: index,
      key: `f${index}h${hunk}p${n++}`,
      hunk,
      ...(left && { left }),
      ...(right && { right }),
    });
    if (left?.sign === "-") addThreads(rows, file, index, threads, left.old, 0, "-");
    if (right) addThreads(rows, file, index, threads, right.sign === " " ? right.old : 0, right.fresh, right.sign);
  };
  for (let at = 0; at < lines.length; ) {
    const line = lines[at];
    if (!line || line.sign === " ") {
      add(line, line);
      at += 1;
      continue;
    }
    const block = blockAt(lines, at);
    at += block.removed.length + block.added.length;
    besides(block, add);
  }
}

/** Lines that became one another stand beside each other, the others alone. */
function besides({ removed, added }: Block, add: (left?: Line, right?: Line) => void): void {
  let [left, right] = [0, 0];
  const isSmall = removed.length * added.length <= FEW_PAIRS;
  const pairs = [...(isSmall ? aligned(texts(removed), texts(added)) : []), [removed.length, added.length] as const];
  for (const [toLeft, toRight] of pairs) {
    while (left < toLeft || right < toRight) {
      add(left < toLeft ? removed[left++] : undefined, right < toRight ? added[right++] : undefined);
    }
    if (left < removed.length && right < added.length) add(removed[left++], added[right++]);
  }
}

interface Block {
  readonly removed: readonly Line[];
  readonly added: readonly Line[];
}

function blockAt(lines: readonly Line[], start: number): Block {
  let middle = start;
  while (lines[middle]?.sign === "-") middle += 1;
  let end = middle;
  while (lines[end]?.sign === "+") end += 1;
  return { removed: lines.slice(start, middle), added: lines.slice(middle, end) };
}

/** The lines of a hunk with their numbers. */
export function linesOf(hunk: Hunk): readonly Line[] {
  const known = lined.get(hunk);
  if (known) return known;
  const lines: { -readonly [K in keyof Line]: Line[K] }[] = [];
  let old = hunk.oldCount ? hunk.oldStart : hunk.oldStart + 1;
  let fresh = hunk.newCount ? hunk.newStart : hunk.newStart + 1;
  for (const said of hunk.lines) {
    const sign = said.charAt(0);
    const [text, index] = [said.slice(1), lines.length];
    const last = lines.at(-1);
    if (sign === "\\") {
      if (last) last.open = true;
    } else if (sign === "-") lines.push({ sign, text, index, old: old++, fresh: 0 });
    else if (sign === "+") lines.push({ sign, text, index, old: 0, fresh: fresh++ });
    else lines.push({ sign: " ", text, index, old: old++, fresh: fresh++ });
  }
  lined.set(hunk, lines);
  return lines;
}

/** What differs in a changed line from the one it was or became: only for the lines that are drawn. */
export function marksOf(hunk: Hunk, line: Line): readonly Span[] {
  const known = marked.get(line);
  if (known) return known;
  const partner = linesOf(hunk)[partnersOf(hunk).get(line.index) ?? -1];
  if (!partner) return NO_MARKS;
  const [before, after] = line.sign === "-" ? [line, partner] : [partner, line];
  const { old, fresh } = wordMarks(before.text, after.text);
  marked.set(before, old);
  marked.set(after, fresh);
  return line.sign === "-" ? old : fresh;
}

/** For each changed line, by its place, the one it was or became. */
function partnersOf(hunk: Hunk): ReadonlyMap<number, number> {
  const known = partnered.get(hunk);
  if (known) return known;
  const partners = new Map<number, number>();
  const lines = linesOf(hunk);
  for (let at = 0; at < lines.length; ) {
    const { removed, added } = blockAt(lines, at);
    for (const [left, right] of aligned(texts(removed), texts(added))) {
      const [before, after] = [removed[left], added[right]];
      if (!before || !after) continue;
      partners.set(before.index, after.index);
      partners.set(after.index, before.index);
    }
    at += Math.max(1, removed.length + added.length);
  }
  partnered.set(hunk, partners);
  return partners;
}

const NO_MARKS: readonly Span[] = [];
const lined = new WeakMap<Hunk, readonly Line[]>();
const marked = new WeakMap<Line, readonly Span[]>();
const partnered = new WeakMap<Hunk, ReadonlyMap<number, number>>();
const texts = (lines: readonly Line[]): readonly string[] => lines.map(({ text }) => text);

/** What a remark on a row is about: its line, on the new side where it has both. */
export const lineOf = (row: Row | undefined): Line | undefined =>
  row?.kind === "line" ? row.line : row?.kind === "pair" ? (row.right ?? row.left) : undefined;

/** The row that a remark is about where the cursor stands on this one: itself, or below the heading of a
    file or hunk the first line of the next hunk that is new, or gone where none is; -1 where there is none. */
export function rowToSay(rows: readonly Row[], at: number): number {
  const from = Math.max(0, at);
  const here = rows[from];
  if (here === undefined || lineOf(here)) return here === undefined ? -1 : from;
  let gone = -1;
  for (let index = from + 1; index < rows.length; index++) {
    const row = rows[index];
    const isNext = row?.kind === "hunk" && gone >= 0;
    if (row?.file !== here.file || isNext) break;
    const sign = lineOf(row)?.sign;
    if (sign === "+") return index;
    if (sign === "-" && gone < 0) gone = index;
  }
  return gone;
}
