import { expect, test } from "vitest";
import { stepsBetween } from "./lines.ts";
import { parsePatch } from "./patch.ts";
import { goneFile, newFile, textPatch } from "./sample.ts";
import { changedSince } from "./since.ts";

const files = (text: string) => parsePatch(text);
const shown = (before: string, now: string) => changedSince(files(before), files(now)).files.map((file) => [file.path, ...file.hunks.flatMap(({ lines }) => lines)]);

test("the shortest way from one text to another", () => {
  const said = stepsBetween(["a", "b", "c", "d"], ["a", "x", "c", "d", "e"]).map(({ sign, text }) => sign + text);
  expect(said).toEqual([" a", "-b", "+x", " c", " d", "+e"]);
  expect(stepsBetween([], ["a"])).toEqual([{ sign: "+", text: "a" }]);
  expect(stepsBetween([], [])).toEqual([]);
});

test.each(Array.from({ length: 60 }, (_, seed) => seed))("what the steps say leads from the old text to the new one (%i)", (seed) => {
  let state = seed * 7919 + 1;
  const next = (most: number): number => (state = (Math.imul(state, 1103515245) + 12345) >>> 0) % most;
  const text = (): string[] => Array.from({ length: next(12) }, () => "abcd".charAt((next(1 << 20) >> 8) % 4));
  const [old, fresh] = [text(), text()];
  const steps = stepsBetween(old, fresh);
  expect(steps.filter(({ sign }) => sign !== "+").map((step) => step.text)).toEqual(old);
  expect(steps.filter(({ sign }) => sign !== "-").map((step) => step.text)).toEqual(fresh);
});

test("texts that differ in very many lines are told as replaced", () => {
  const many = (word: string): string[] => Array.from({ length: 5000 }, (_, n) => `${word} ${n}`);
  expect(stepsBetween(many("a"), many("b"))).toHaveLength(10_000);
});

test("only what the revision did differently is shown", () => {
  const first = textPatch("a", "@@ -1,4 +1,5 @@\n one\n-two\n+TWO\n+extra\n three\n four");
  const second = textPatch("a", "@@ -1,4 +1,5 @@\n one\n-two\n+TWO!\n+extra\n three\n four", "1111111..5555555");
  expect(shown(first, second)).toEqual([["a", " one", "-TWO", "+TWO!", " extra", " three", " four"]]);
});

test("a change taken back in the revision shows what the base had", () => {
  const first = textPatch("a", "@@ -1,3 +1,3 @@\n one\n-two\n+TWO\n three\n@@ -20,3 +20,3 @@\n x\n-y\n+Y\n z");
  const second = textPatch("a", "@@ -20,3 +20,3 @@\n x\n-y\n+Y\n z", "1111111..5555555");
  expect(shown(first, second)).toEqual([["a", " one", "-TWO", "+two", " three"]]);
});

test("line numbers are those of the two attempts", () => {
  const first = textPatch("a", "@@ -1,2 +1,3 @@\n one\n+more\n two\n@@ -20,3 +21,3 @@\n x\n-y\n+Y\n z");
  const second = textPatch("a", "@@ -1,2 +1,4 @@\n one\n+more\n+and more\n two\n@@ -20,3 +22,3 @@\n x\n-y\n+YY\n z", "1111111..5555555");
  const [file] = changedSince(files(first), files(second)).files;
  expect(file?.hunks.map(({ oldStart, newStart }) => [oldStart, newStart])).toEqual([[1, 1], [21, 22]]);
});

test("files that are the same in both are left out; new, dropped and moved ones are told", () => {
  const same = textPatch("same", "@@ -1 +1 @@\n-a\n+b");
  const { files: told, moved } = changedSince(
    files(same + newFile("dropped", ["x"]) + textPatch("ground", "@@ -1 +1 @@\n-a\n+b", "aaaaaaa..bbbbbbb")),
    files(same + newFile("fresh", ["y"]) + textPatch("ground", "@@ -1 +1 @@\n-c\n+b", "ccccccc..bbbbbbb")),
  );
  expect(told.map(({ path, status }) => [path, status])).toEqual([["fresh", "added"], ["ground", "modified"], ["dropped", "deleted"]]);
  expect(moved).toEqual(["ground"]);
});

test("a new file that grows shows only what was added to it", () => {
  expect(shown(newFile("n", ["a", "b"]), newFile("n", ["a", "b", "c"], "5555555"))).toEqual([["n", " a", " b", "+c"]]);
});

test("a deletion that the revision no longer makes is told as made again", () => {
  expect(shown(goneFile("g", ["a"]), "")).toEqual([["g", "+a"]]);
});
