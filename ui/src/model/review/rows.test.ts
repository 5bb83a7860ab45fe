import { expect, test } from "vitest";
import { type Row, type View, lineOf, linesOf, marksOf, placeKey, rowToSay, rowsOf } from "./rows.ts";
import { parsePatch } from "./patch.ts";
import { BUCKET, newFile, one, textPatch } from "./sample.ts";

const PLAIN: View = { split: false, folded: new Set(), threads: new Set(), opened: new Set() };
const kinds = (rows: readonly Row[]): string => rows.map((row) => row.kind).join(" ");

test("lines are numbered on both sides", () => {
  const [hunk] = one(textPatch("a", BUCKET)).hunks;
  const lines = hunk ? linesOf(hunk) : [];
  expect(lines.map(({ sign, old, fresh }) => [sign, old, fresh])).toEqual([
    [" ", 18, 18], [" ", 19, 19], [" ", 20, 20],
    ["-", 21, 0], ["-", 22, 0],
    ["+", 0, 21], ["+", 0, 22], ["+", 0, 23],
    [" ", 23, 24], [" ", 24, 25],
  ]);
});

test("only the words that differ are marked", () => {
  const [hunk] = one(textPatch("a", BUCKET)).hunks;
  if (!hunk) throw new Error();
  const shown = linesOf(hunk).map((line) => marksOf(hunk, line).map((mark) => line.text.slice(mark.start, mark.end)));
  expect(shown.slice(3, 8)).toEqual([[], ["time"], ["float(", ")"], ["monotonic"], []]);
});

test("split view sets what became what side by side", () => {
  const rows = rowsOf([one(textPatch("a", BUCKET))], { ...PLAIN, split: true });
  const pairs = rows.flatMap((row) => (row.kind === "pair" ? [[row.left?.old ?? 0, row.right?.fresh ?? 0]] : []));
  expect(pairs.slice(0, 7)).toEqual([[18, 18], [19, 19], [20, 20], [21, 21], [22, 22], [0, 23], [23, 24]]);
});

test("a folded file is only its heading", () => {
  const files = parsePatch(textPatch("a", BUCKET) + newFile("b", ["x"]));
  expect(kinds(rowsOf(files, { ...PLAIN, folded: new Set(["a"]) }))).toBe("file file hunk line");
});

test("what is said about a line stands below it, in both views", () => {
  const file = one(textPatch("a", "@@ -1,2 +1,2 @@\n-x\n+y\n z"));
  const threads = new Set([placeKey({ path: "a", side: "old", line: 1 }), placeKey({ path: "a", side: "new", line: 2 })]);
  expect(kinds(rowsOf([file], { ...PLAIN, threads }))).toBe("file hunk line thread line line thread");
  expect(kinds(rowsOf([file], { ...PLAIN, threads, split: true }))).toBe("file hunk pair thread pair thread");
});

test("a file of very many lines waits until it is asked for", () => {
  const file = one(newFile("lock", Array.from({ length: 30_001 }, (_, n) => `line ${n}`)));
  expect(kinds(rowsOf([file], PLAIN))).toBe("file content");
  expect(rowsOf([file], { ...PLAIN, opened: new Set(["lock"]) })).toHaveLength(30_003);
});

test("a remark is about the line under the cursor, or below a heading about the first that is new", () => {
  const rows = rowsOf(parsePatch(textPatch("a", "@@ -1,2 +1,2 @@\n w\n-x\n+y\n@@ -9,2 +9,1 @@\n k\n-z") + newFile("b", [])), PLAIN);
  const said = (at: number) => lineOf(rows[rowToSay(rows, at)])?.text;
  expect(kinds(rows)).toBe("file hunk line line line hunk line line file hunk");
  expect([-1, 0, 1, 2, 3].map(said)).toEqual(["y", "y", "y", "w", "x"]);
  expect([5, 7].map(said)).toEqual(["z", "z"]);
  expect([rowToSay(rows, 8), rowToSay([], -1)]).toEqual([-1, -1]);
});
