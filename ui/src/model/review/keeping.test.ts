import { expect, test } from "vitest";
import { choicesOf, chosenOf, takesHunk, withFile, withHunk } from "./choice.ts";
import { type Comment, commented, placed } from "./comments.ts";
import { parsePatch } from "./patch.ts";
import { withRenames } from "./renames.ts";
import { BUCKET, goneFile, newFile, one, textPatch } from "./sample.ts";
import { hasChanged, isSeen, nextUnseen, withSeen } from "./seen.ts";
import { inTreeOrder, treeOf } from "./tree.ts";

const file = one(textPatch("a/b.py", BUCKET));
const other = one(newFile("c.py", ["x"]));

test("a seen file is unseen again once its content changes", () => {
  const seen = withSeen({}, file, true);
  expect(isSeen(seen, file)).toBe(true);
  const revised = one(textPatch("a/b.py", BUCKET, "1111111..7777777"));
  expect([isSeen(seen, revised), hasChanged(seen, revised), hasChanged(seen, other)]).toEqual([false, true, false]);
  expect(isSeen(withSeen(seen, file, false), file)).toBe(false);
});

test("a file may have the name of something every object has", () => {
  const named = one(newFile("constructor", ["x"]));
  expect([isSeen({}, named), hasChanged({}, named), chosenOf({}, named)]).toEqual([false, false, "all"]);
});

test("the next unseen file is the next one below, then from the top", () => {
  const seen = withSeen({}, other, true);
  expect(nextUnseen(seen, [file, other], 0)).toBe(0);
  expect(nextUnseen(withSeen(seen, file, true), [file, other], 0)).toBeNull();
});

test("leaving out and taking back hunks ends where it began", () => {
  const out = withHunk({}, file, 2, false);
  expect([chosenOf(out, file), takesHunk(out, file, 1), takesHunk(out, file, 2)]).toEqual(["some", true, false]);
  expect(choicesOf(out, [file, other])).toEqual([{ path: "a/b.py", hunks: [1] }, { path: "c.py" }]);
  expect(withHunk(out, file, 2, true)).toEqual({});
  expect(chosenOf(withHunk(out, file, 1, false), file)).toBe("none");
});

test("everything chosen is no choice, and nothing chosen is an empty one", () => {
  expect(choicesOf({}, [file, other])).toBeUndefined();
  expect(choicesOf(withFile(withFile({}, file, false), other, false), [file, other])).toEqual([]);
});

test("a file that is whole or not at all has no hunks to leave out", () => {
  expect(withHunk({}, other, 1, false)).toEqual({});
});

test("a rename is chosen with both of its names", () => {
  const lines = ["one", "two", "three", "four"];
  const files = withRenames(parsePatch(goneFile("old.py", lines) + newFile("new.py", [...lines, "five"]) + newFile("c.py", ["x"])));
  expect(files.map(({ path, from, added, removed }) => [path, from, added, removed])).toEqual([["new.py", "old.py", 1, 0], ["c.py", undefined, 1, 0]]);
  const [moved, made] = files;
  expect(made && choicesOf(withFile({}, made, false), files)).toEqual([{ path: "old.py" }, { path: "new.py" }]);
  expect(moved && choicesOf(withFile({}, moved, false), files)).toEqual([{ path: "c.py" }]);
});

test("files that share little are not a rename, equal contents are", () => {
  const different = parsePatch(goneFile("a", ["1", "2", "3"]) + newFile("b", ["4", "5", "6"]));
  expect(withRenames(different)).toHaveLength(2);
  const same = parsePatch(goneFile("a", ["1"], "abc1234") + newFile("b", ["1"], "abc1234"));
  expect(withRenames(same)).toMatchObject([{ path: "b", from: "a", added: 0, removed: 0, hunks: [] }]);
});

test("comments are said, changed and taken away; an empty one is none", () => {
  const place = { path: "a/b.py", side: "new", line: 22 } as const;
  const said = commented([], { type: "said", place, quote: "x", text: " why? " });
  expect(said).toEqual([{ id: 1, ...place, quote: "x", text: "why?" }]);
  expect(commented(said, { type: "said", place, quote: "x", text: "  " })).toBe(said);
  expect(commented(said, { type: "changed", id: 1, text: "how?" })[0]?.text).toBe("how?");
  expect(commented(said, { type: "changed", id: 1, text: "" })).toEqual([]);
  expect(commented(said, { type: "removed", id: 1 })).toEqual([]);
});

test("a comment follows its line into a later attempt, or is told to be adrift", () => {
  const comment: Comment = { id: 1, path: "a/b.py", side: "new", line: 2, quote: "        self._lock = asyncio.Lock()", text: "why?" };
  expect(placed([comment], [file]).comments[0]?.line).toBe(23);
  expect(placed([comment], [other])).toEqual({ comments: [], adrift: [comment] });
});

test("the tree joins lonely folders and keeps files in order", () => {
  const files = ["src/x/y/b.py", "src/x/y/a.py", "top.py", "docs/one.md"].map((path) => one(newFile(path, ["x"])));
  expect(treeOf(files).map((branch) => `${"  ".repeat(branch.depth)}${branch.name}`)).toEqual(["docs", "  one.md", "src/x/y", "  a.py", "  b.py", "top.py"]);
  expect(inTreeOrder(files).map(({ path }) => path)).toEqual(["docs/one.md", "src/x/y/a.py", "src/x/y/b.py", "top.py"]);
});
