// A line of code as pieces to draw: what colour, whether it differs, and what is unseen in it.

import { oddities } from "../odd.ts";
import type { Span } from "./wordDiff.ts";

export type Colour = "key" | "str" | "num" | "fn" | "type" | "com";

export interface Token extends Span {
  readonly colour: Colour;
}

export interface Brush {
  readonly text: string;
  readonly colour?: Colour;
  readonly differs?: true;
  readonly odd?: string;
}

/** Longer lines are cut where they are drawn, and say so. */
export const LONGEST_DRAWN = 2000;

/** Tokens and marks are in order and do not overlap among themselves. */
export function painted(text: string, tokens: readonly Token[], marks: readonly Span[]): readonly Brush[] {
  const odd = oddities(text);
  const cuts = new Set([0, text.length]);
  for (const { start, end } of [...tokens, ...marks, ...odd]) {
    cuts.add(start);
    cuts.add(end);
  }
  const places = [...cuts].filter((place) => place <= text.length).sort((a, b) => a - b);
  const at = { token: 0, mark: 0, odd: 0 };
  const covering = <S extends Span>(spans: readonly S[], which: keyof typeof at, start: number): S | undefined => {
    while ((spans[at[which]]?.end ?? Infinity) <= start) at[which] += 1;
    const span = spans[at[which]];
    return span && span.start <= start ? span : undefined;
  };
  return places.slice(0, -1).map((start, index) => {
    const colour = covering(tokens, "token", start)?.colour;
    const name = covering(odd, "odd", start)?.name;
    return {
      text: text.slice(start, places[index + 1]),
      ...(colour && { colour }),
      ...(covering(marks, "mark", start) && { differs: true as const }),
      ...(name !== undefined && { odd: name }),
    };
  });
}
