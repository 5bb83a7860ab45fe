// The colours of the lines in view. They come a little after the lines themselves, and where they
// cannot be had in time the line stays as it is.

import { useSyncExternalStore } from "react";
import type { Token } from "../../../model/review/paint.ts";
import type { Hunk } from "../../../model/review/patch.ts";
import { type Line, linesOf } from "../../../model/review/rows.ts";
import type { Coloured, Wish } from "./wish.ts";

const NONE: readonly Token[] = [];
/** Lines that are coloured together: what is begun above them is not seen, which is seldom. */
const AT_ONCE = 400;
const LONGEST = 100_000;
const PATIENCE_MS = 2000;

/** Some lines of a hunk, and what is known of their colours. */
class Stretch {
  private readonly heard = new Set<() => void>();
  private tokens: ReadonlyMap<number, readonly Token[]> | null = null;
  private isWished = false;
  private readonly lines: readonly Line[];
  private readonly language: string;

  constructor(lines: readonly Line[], language: string) {
    this.lines = lines;
    this.language = language;
  }

  readonly watch = (changed: () => void): (() => void) => {
    this.heard.add(changed);
    if (!this.isWished) this.wish();
    return () => {
      this.heard.delete(changed);
    };
  };

  of(index: number): readonly Token[] {
    return this.tokens?.get(index) ?? NONE;
  }

  private wish(): void {
    this.isWished = true;
    const sides = (["-", "+"] as const).map((sign) => this.lines.filter((line) => line.sign === sign || line.sign === " "));
    const texts = sides.map((lines) => lines.map(({ text }) => text).join("\n"));
    if (!this.language || texts.some((text) => text.length > LONGEST)) return;
    ask(this.language, texts, (coloured) => {
      const tokens = new Map<number, readonly Token[]>();
      sides.forEach((lines, side) => {
        lines.forEach((line, n) => tokens.set(line.index, coloured[side]?.[n] ?? NONE));
      });
      this.tokens = tokens;
      for (const changed of this.heard) changed();
    });
  }
}

const stretches = new WeakMap<Hunk, Map<number, Stretch>>();

function stretchOf(hunk: Hunk, language: string, index: number): Stretch {
  const known = stretches.get(hunk) ?? new Map<number, Stretch>();
  stretches.set(hunk, known);
  const number = Math.floor(index / AT_ONCE);
  const made = known.get(number) ?? new Stretch(linesOf(hunk).slice(number * AT_ONCE, (number + 1) * AT_ONCE), language);
  known.set(number, made);
  return made;
}

/** The colours of a line, once they are known. */
export function useTokens(hunk: Hunk, language: string, index: number): readonly Token[] {
  const stretch = stretchOf(hunk, language, index);
  return useSyncExternalStore(stretch.watch, () => stretch.of(index));
}

type Answer = (sides: Coloured["sides"]) => void;

let worker: Worker | null = null;
let last = 0;
const waiting = new Map<number, { readonly wish: Wish; readonly answer: Answer }>();
let timer: ReturnType<typeof setTimeout> | undefined;

function ask(language: string, texts: readonly string[], answer: Answer): void {
  const wish = { id: ++last, language, texts };
  waiting.set(wish.id, { wish, answer });
  hired()?.postMessage(wish);
  watchOver();
}

function hired(): Worker | null {
  if (worker) return worker;
  try {
    worker = new Worker(new URL("./worker.ts", import.meta.url), { type: "module", name: "colours" });
  } catch {
    return null; // no workers here: no colours
  }
  worker.onmessage = ({ data }: MessageEvent<Coloured>) => {
    waiting.get(data.id)?.answer(data.sides);
    waiting.delete(data.id);
    watchOver();
  };
  // What it cannot do it will not do next time either.
  worker.onerror = giveUpTheFirst;
  return worker;
}

/** Nothing is waited for longer than a moment: the one it hangs on is left without colours. */
function watchOver(): void {
  clearTimeout(timer);
  if (waiting.size) timer = setTimeout(giveUpTheFirst, PATIENCE_MS);
}

function giveUpTheFirst(): void {
  const [first] = waiting.keys();
  if (first !== undefined) waiting.delete(first);
  worker?.terminate();
  worker = null;
  const next = waiting.size ? hired() : null;
  for (const { wish } of waiting.values()) next?.postMessage(wish);
  watchOver();
}
