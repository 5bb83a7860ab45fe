// Which words differ between a line that was taken away and the one that came in its place.

export interface Span {
  readonly start: number;
  readonly end: number;
}

export interface Marks {
  readonly old: readonly Span[];
  readonly fresh: readonly Span[];
}

const WORD = /[\p{L}\p{N}_]+|\s+|[^\p{L}\p{N}_\s]/gu;
/** Longer lines are marked as a whole between their equal ends: nobody reads them word by word. */
const MOST_WORDS = 400;
const LONGEST = 4000;
/** Where less than this is shared, marks only make noise. */
const ALIKE = 0.35;
const MOST_PAIRS = 900;

/** For each removed line of a block the added line it became, if any; both in order. */
export function aligned(removed: readonly string[], added: readonly string[]): readonly (readonly [number, number])[] {
  if (!removed.length || !added.length) return [];
  if (removed.length * added.length > MOST_PAIRS) {
    return removed.slice(0, added.length).map((_, index) => [index, index] as const);
  }
  const score = removed.map((old) => added.map((fresh) => likeness(old, fresh)));
  return bestPairs(score, removed.length, added.length);
}

function bestPairs(score: readonly (readonly number[])[], rows: number, columns: number): readonly (readonly [number, number])[] {
  const best = Array.from({ length: rows + 1 }, () => new Float64Array(columns + 1));
  const of = (row: number, column: number): number => best[row]?.[column] ?? 0;
  const pairs = (row: number, column: number): number => {
    const alike = score[row]?.[column] ?? 0;
    return alike >= ALIKE ? of(row + 1, column + 1) + alike : -1;
  };
  for (let row = rows - 1; row >= 0; row -= 1) {
    for (let column = columns - 1; column >= 0; column -= 1) {
      const line = best[row];
      if (line) line[column] = Math.max(of(row + 1, column), of(row, column + 1), pairs(row, column));
    }
  }
  const found: (readonly [number, number])[] = [];
  let [row, column] = [0, 0];
  while (row < rows && column < columns) {
    if (of(row, column) === pairs(row, column)) found.push([row++, column++]);
    else if (of(row, column) === of(row + 1, column)) row += 1;
    else column += 1;
  }
  return found;
}

function likeness(old: string, fresh: string): number {
  const [a, b] = [old.trim(), fresh.trim()];
  if (a === b) return a ? 1 : 0;
  if (!a || !b || Math.max(a.length, b.length) > LONGEST) return 0;
  const counts = new Map<string, number>();
  let total = 0;
  for (const [word] of a.matchAll(WORD)) {
    if (!word.trim()) continue;
    counts.set(word, (counts.get(word) ?? 0) + 1);
    total += word.length;
  }
  let shared = 0;
  for (const [word] of b.matchAll(WORD)) {
    if (!word.trim()) continue;
    total += word.length;
    const left = counts.get(word) ?? 0;
    if (left > 0) {
      counts.set(word, left - 1);
      shared += 2 * word.length;
    }
  }
  return total ? shared / total : 0;
}

/** What differs on each side. */
export function wordMarks(old: string, fresh: string): Marks {
  if (old === fresh) return { old: [], fresh: [] };
  const [a, b] = [words(old), words(fresh)];
  let head = 0;
  while (head < a.length && head < b.length && a[head] === b[head]) head += 1;
  let tail = 0;
  while (tail < a.length - head && tail < b.length - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail += 1;
  const [keptOld, keptFresh] = common(a.slice(head, a.length - tail), b.slice(head, b.length - tail));
  return { old: spans(a, head, tail, keptOld), fresh: spans(b, head, tail, keptFresh) };
}

const words = (text: string): readonly string[] =>
  text.length > LONGEST ? [text] : [...text.matchAll(WORD)].map(([word]) => word);

/** The places of the longest common row of words, in each of the two. */
function common(a: readonly string[], b: readonly string[]): [ReadonlySet<number>, ReadonlySet<number>] {
  const [inA, inB] = [new Set<number>(), new Set<number>()];
  if (a.length > MOST_WORDS || b.length > MOST_WORDS || !a.length || !b.length) return [inA, inB];
  const length = Array.from({ length: a.length + 1 }, () => new Uint16Array(b.length + 1));
  const of = (i: number, j: number): number => length[i]?.[j] ?? 0;
  for (let i = a.length - 1; i >= 0; i -= 1) {
    const line = length[i];
    for (let j = b.length - 1; j >= 0; j -= 1) {
      if (line) line[j] = a[i] === b[j] ? of(i + 1, j + 1) + 1 : Math.max(of(i + 1, j), of(i, j + 1));
    }
  }
  for (let [i, j] = [0, 0]; i < a.length && j < b.length; ) {
    if (a[i] === b[j]) {
      inA.add(i++);
      inB.add(j++);
    } else if (of(i + 1, j) >= of(i, j + 1)) i += 1;
    else j += 1;
  }
  return [inA, inB];
}

function spans(all: readonly string[], head: number, tail: number, kept: ReadonlySet<number>): readonly Span[] {
  const found: { start: number; end: number }[] = [];
  let place = 0;
  all.forEach((word, index) => {
    const differs = index >= head && index < all.length - tail && !kept.has(index - head);
    const last = found.at(-1);
    if (differs && last?.end === place) last.end += word.length;
    else if (differs) found.push({ start: place, end: place + word.length });
    place += word.length;
  });
  return joined(found, all.join(""));
}

/** Marks with only a blank between them read as one. */
function joined(found: readonly Span[], text: string): readonly Span[] {
  const result: { start: number; end: number }[] = [];
  for (const span of found) {
    const last = result.at(-1);
    if (last && /^\s*$/.test(text.slice(last.end, span.start))) last.end = span.end;
    else result.push({ ...span });
  }
  return result.filter((span) => text.slice(span.start, span.end).trim() !== "" || result.length === 1);
}
