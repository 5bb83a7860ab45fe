// From the names of a highlighter to the few colours of the page, line by line.

import type { Colour, Token } from "./paint.ts";

/** A tree as highlighters make it. */
export interface Node {
  readonly type: string;
  readonly value?: string;
  readonly properties?: { readonly className?: unknown };
  readonly children?: readonly Node[];
}

const COLOURS: Readonly<Record<string, Colour>> = {
  "hljs-keyword": "key", "hljs-selector-tag": "key", "hljs-meta": "key", "hljs-operator": "key", "hljs-section": "key", "hljs-name": "key",
  "hljs-string": "str", "hljs-regexp": "str", "hljs-symbol": "str", "hljs-char": "str", "hljs-link": "str", "hljs-code": "str",
  "hljs-number": "num", "hljs-literal": "num", "hljs-variable": "num", "hljs-bullet": "num",
  "hljs-title": "fn", "hljs-attr": "fn", "hljs-attribute": "fn", "hljs-selector-class": "fn", "hljs-selector-id": "fn",
  "hljs-type": "type", "hljs-built_in": "type", "hljs-class": "type", "hljs-template-tag": "type",
  "hljs-comment": "com", "hljs-quote": "com", "hljs-doctag": "com",
};

/** The tokens of each line of the text that the tree was made of. */
export function tokensOf(tree: Node, lines: number): readonly (readonly Token[])[] {
  const found: Token[][] = Array.from({ length: lines }, () => []);
  let [line, column] = [0, 0];
  const walk = (node: Node, colour: Colour | undefined): void => {
    if (node.type === "text") {
      for (const [index, part] of (node.value ?? "").split("\n").entries()) {
        if (index) [line, column] = [line + 1, 0];
        if (colour && part) found[line]?.push({ start: column, end: column + part.length, colour });
        column += part.length;
      }
      return;
    }
    const inner = colourOf(node) ?? colour;
    for (const child of node.children ?? []) walk(child, inner);
  };
  walk(tree, undefined);
  return found;
}

function colourOf(node: Node): Colour | undefined {
  const names = node.properties?.className;
  if (!Array.isArray(names)) return undefined;
  if (names.includes("class_")) return "type";
  if (names.includes("language_")) return undefined;
  return names.map((name) => (typeof name === "string" && Object.hasOwn(COLOURS, name) ? COLOURS[name] : undefined)).find(Boolean);
}
