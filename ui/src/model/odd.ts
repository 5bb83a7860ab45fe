// Characters that do not show, or that make text show otherwise than it reads. Agents write what is
// shown here, and a person decides by it, so that nothing may hide in it.

export interface Piece {
  readonly text: string;
  /** What stands here unseen, by its name; then `text` is the character itself. */
  readonly odd?: string;
}

const NAMES: Readonly<Record<number, string>> = {
  0x00: "NUL", 0x07: "BEL", 0x08: "BS", 0x09: "TAB", 0x0a: "LF", 0x0b: "VT", 0x0c: "FF", 0x0d: "CR", 0x1b: "ESC", 0x7f: "DEL",
  0x85: "NEL", 0xa0: "NBSP", 0xad: "SHY", 0x61c: "ALM",
  0x200b: "ZWSP", 0x200c: "ZWNJ", 0x200d: "ZWJ", 0x200e: "LRM", 0x200f: "RLM",
  0x2028: "LS", 0x2029: "PS", 0x202a: "LRE", 0x202b: "RLE", 0x202c: "PDF", 0x202d: "LRO", 0x202e: "RLO",
  0x2060: "WJ", 0x2066: "LRI", 0x2067: "RLI", 0x2068: "FSI", 0x2069: "PDI", 0x3164: "HANGUL FILLER",
  0xfeff: "BOM",
};

// Controls, bidi marks, blanks of no width or of another kind, tags, and halves of characters. A
// joiner between two pictures belongs to them.
const ODD =
  // eslint-disable-next-line no-control-regex, no-misleading-character-class -- they are what is looked for
  /[\x00-\x08\x0b-\x1f\x7f-\xa0\xad\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u2000-\u200c\u200e\u200f\u2028-\u202f\u205f-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb\u{e0000}-\u{e007f}\u{e0100}-\u{e01ef}\p{Cs}]|(?<!\p{Extended_Pictographic}\ufe0f?)\u200d|\u200d(?!\p{Extended_Pictographic})/gu;

// What is one line, such as a name, could pass for two with the end of a line in it.
// eslint-disable-next-line no-misleading-character-class -- as above
const ODD_IN_LINE = new RegExp(`[\\t\\n]|${ODD.source}`, ODD.flags);

/** The text in pieces, each odd character alone with its name. */
export const pieces = (text: string): readonly Piece[] => cut(text, ODD);

/** The same for a name, where a tab or the end of a line is odd too. */
export const piecesOfName = (name: string): readonly Piece[] => cut(name, ODD_IN_LINE);

function cut(text: string, odd: RegExp): readonly Piece[] {
  const found: Piece[] = [];
  let from = 0;
  for (const match of text.matchAll(odd)) {
    if (match.index > from) found.push({ text: text.slice(from, match.index) });
    found.push({ text: match[0], odd: nameOf(match[0]) });
    from = match.index + match[0].length;
  }
  if (from < text.length || !found.length) found.push({ text: text.slice(from) });
  return found;
}

/** Where odd characters stand in a text, by their first place. */
export function oddities(text: string): readonly { readonly start: number; readonly end: number; readonly name: string }[] {
  return [...text.matchAll(ODD)].map((match) => ({
    start: match.index,
    end: match.index + match[0].length,
    name: nameOf(match[0]),
  }));
}

function nameOf(character: string): string {
  const code = character.codePointAt(0) ?? 0;
  return NAMES[code] ?? `U+${code.toString(16).toUpperCase().padStart(4, "0")}`;
}

/** Plain text with every odd character said in words, for titles and the like. */
export const plain = (text: string): string => said(pieces(text));

/** The same for a name. */
export const plainName = (name: string): string => said(piecesOfName(name));

const said = (found: readonly Piece[]): string =>
  found.map((piece) => (piece.odd === undefined ? piece.text : `⟨${piece.odd}⟩`)).join("");
