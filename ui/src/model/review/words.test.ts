import { expect, test } from "vitest";
import { pieces, plain, plainName } from "../odd.ts";
import { painted } from "./paint.ts";
import { aligned, wordMarks } from "./wordDiff.ts";

test("lines are paired by likeness, in order", () => {
  expect(aligned(["a = one()", "b = two()"], ["zzz", "a = one(1)", "b = two(2)"])).toEqual([[0, 1], [1, 2]]);
  expect(aligned(["x"], ["completely different"])).toEqual([]);
});

test("marks cover what differs and nothing else", () => {
  const { old, fresh } = wordMarks("return self._take(cost)", "return await self._take(cost, now)");
  expect(old).toEqual([]);
  expect(fresh.map(({ start, end }) => "return await self._take(cost, now)".slice(start, end))).toEqual(["await ", ", now"]);
});

test("very long lines are marked without comparing every word", () => {
  const long = "word ".repeat(20_000);
  expect(wordMarks(`${long}a`, `${long}b`).fresh).toHaveLength(1);
});

test.each([
  ["\u202Eevil", "RLO"], ["a\u200Bb", "ZWSP"], ["\u001B[31mred", "ESC"], ["x\u2066y", "LRI"],
  ["\uFEFFx", "BOM"], ["soft\u00ADhyphen", "SHY"], ["\u{E0041}", "U+E0041"], ["half \uD800", "U+D800"], ["a\u3164b", "HANGUL FILLER"],
])("what does not show is named: %j", (text, name) => {
  expect(pieces(text).find((piece) => piece.odd !== undefined)?.odd).toBe(name);
  expect(plain(text)).toContain(`⟨${name}⟩`);
});

test.each(["한국어 주석", "中文注释", "naïve café", "tab\tis fine", "👩‍👩‍👧 family", "שלום"])("ordinary text is left alone: %s", (text) => {
  expect(pieces(text)).toEqual([{ text }]);
});

test("a name that holds the end of a line or a tab stays one line", () => {
  expect(plainName("a.py\n+++ b\t\u202E.py")).toBe("a.py⟨LF⟩+++ b⟨TAB⟩⟨RLO⟩.py");
  expect(plain("two\nlines")).toBe("two\nlines");
});

test("colours, marks and odd characters are cut into pieces that together are the line", () => {
  const text = "return \u202Ex";
  const brushes = painted(text, [{ start: 0, end: 6, colour: "key" }], [{ start: 4, end: 9 }]);
  expect(brushes.map((brush) => brush.text).join("")).toBe(text);
  expect(brushes).toEqual([
    { text: "retu", colour: "key" },
    { text: "rn", colour: "key", differs: true },
    { text: " ", differs: true },
    { text: "\u202E", differs: true, odd: "RLO" },
    { text: "x", differs: true },
  ]);
});
