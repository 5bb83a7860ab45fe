import type { Token } from "../../../model/review/paint.ts";

export interface Wish {
  readonly id: number;
  readonly language: string;
  readonly texts: readonly string[];
}

/** For each text, and in it for each line, its tokens. */
export interface Coloured {
  readonly id: number;
  readonly sides: readonly (readonly (readonly Token[])[])[];
}
