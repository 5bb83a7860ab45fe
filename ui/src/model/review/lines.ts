// The difference of two texts, line by line, as hunks with context: Myers' way, within bounds.

import type { Hunk } from "./patch.ts";

export interface Step {
  readonly sign: " " | "-" | "+";
  readonly text: string;
}

const CONTEXT = 3;
/** Beyond this many differences what lies between the equal ends is told as replaced. */
const MOST_EDITS = 1500;

export function hunksBetween(old: readonly string[], fresh: readonly string[]): readonly Hunk[] {
  return hunksOf(stepsBetween(old, fresh));
}

/** What turns the old lines into the new ones; equal lines are steps, too. */
export function stepsBetween(old: readonly string[], fresh: readonly string[]): readonly Step[] {
  let head = 0;
  while (head < old.length && head < fresh.length && old[head] === fresh[head]) head += 1;
  let tail = 0;
  while (
    tail < old.length - head &&
    tail < fresh.length - head &&
    old[old.length - 1 - tail] === fresh[fresh.length - 1 - tail]
  ) {
    tail += 1;
  }
  return [
    ...old.slice(0, head).map((text) => ({ sign: " ", text }) as const),
    ...between(old.slice(head, old.length - tail), fresh.slice(head, fresh.length - tail)),
    ...old.slice(old.length - tail).map((text) => ({ sign: " ", text }) as const),
  ];
}

function between(old: readonly string[], fresh: readonly string[]): readonly Step[] {
  const replaced = (): readonly Step[] => [
    ...old.map((text) => ({ sign: "-", text }) as const),
    ...fresh.map((text) => ({ sign: "+", text }) as const),
  ];
  if (!old.length || !fresh.length) return replaced();
  const trace = furthest(old, fresh);
  return trace ? walkedBack(old, fresh, trace) : replaced();
}

/** For each number of edits how far each diagonal reaches; null when there are too many. */
function furthest(old: readonly string[], fresh: readonly string[]): readonly Int32Array[] | null {
  const most = Math.min(old.length + fresh.length, MOST_EDITS);
  const reach = new Int32Array(2 * most + 3);
  const trace: Int32Array[] = [];
  const middle = most + 1;
  for (let edits = 0; edits <= most; edits += 1) {
    trace.push(reach.slice(middle - edits - 1, middle + edits + 2));
    for (let k = -edits; k <= edits; k += 2) {
      const down = k === -edits || (k !== edits && at(reach, middle + k - 1) < at(reach, middle + k + 1));
      let x = down ? at(reach, middle + k + 1) : at(reach, middle + k - 1) + 1;
      while (x < old.length && x - k < fresh.length && old[x] === fresh[x - k]) x += 1;
      reach[middle + k] = x;
      if (x >= old.length && x - k >= fresh.length) return trace;
    }
  }
  return null;
}

const at = (numbers: Int32Array, index: number): number => numbers[index] ?? 0;

function walkedBack(old: readonly string[], fresh: readonly string[], trace: readonly Int32Array[]): readonly Step[] {
  const steps: Step[] = [];
  let x = old.length;
  let y = fresh.length;
  for (let edits = trace.length - 1; edits >= 0; edits -= 1) {
    const reach = trace[edits] ?? new Int32Array();
    const middle = edits + 1;
    const k = x - y;
    const down = k === -edits || (k !== edits && at(reach, middle + k - 1) < at(reach, middle + k + 1));
    const before = down ? k + 1 : k - 1;
    const startX = edits === 0 ? 0 : at(reach, middle + before);
    const startY = edits === 0 ? 0 : startX - before;
    while (x > startX && y > startY) {
      x -= 1;
      y -= 1;
      steps.push({ sign: " ", text: old[x] ?? "" });
    }
    if (edits === 0) break;
    if (down) steps.push({ sign: "+", text: fresh[(y -= 1)] ?? "" });
    else steps.push({ sign: "-", text: old[(x -= 1)] ?? "" });
  }
  return steps.reverse();
}

/** The changes among these steps, each with the lines around it. */
export function hunksOf(steps: readonly Step[], oldFirst = 1, newFirst = 1): readonly Hunk[] {
  const hunks: Hunk[] = [];
  let [old, fresh] = [oldFirst, newFirst];
  const places = steps.map(({ sign }) => {
    const place = [old, fresh] as const;
    if (sign !== "+") old += 1;
    if (sign !== "-") fresh += 1;
    return place;
  });
  let next = 0;
  for (;;) {
    let change = next;
    while (steps[change]?.sign === " ") change += 1;
    if (change >= steps.length) return hunks;
    let last = change;
    for (let i = change; i < steps.length && i - last <= 2 * CONTEXT; i += 1) {
      if (steps[i]?.sign !== " ") last = i;
    }
    const first = Math.max(next, change - CONTEXT);
    next = Math.min(steps.length, last + 1 + CONTEXT);
    const lines = steps.slice(first, next);
    const oldCount = lines.filter((step) => step.sign !== "+").length;
    const newCount = lines.filter((step) => step.sign !== "-").length;
    const [oldStart, newStart] = places[first] ?? [oldFirst, newFirst];
    hunks.push({
      number: hunks.length + 1,
      oldStart: oldCount ? oldStart : oldStart - 1,
      oldCount,
      newStart: newCount ? newStart : newStart - 1,
      newCount,
      heading: "",
      lines: lines.map((step) => step.sign + step.text),
    });
  }
}
