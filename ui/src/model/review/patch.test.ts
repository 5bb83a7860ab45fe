import { expect, test } from "vitest";
import { choosable, fingerprint, parsePatch } from "./patch.ts";
import { BUCKET, goneFile, newFile, one, textPatch } from "./sample.ts";

test("files, hunks and counts are read in their order", () => {
  const files = parsePatch(textPatch("ledger/bucket.py", BUCKET) + newFile("b c.py", ["x", "y"]) + goneFile("d.py", ["z"]));
  expect(files.map(({ path, status, added, removed }) => [path, status, added, removed])).toEqual([
    ["ledger/bucket.py", "modified", 3, 3],
    ["b c.py", "added", 2, 0],
    ["d.py", "deleted", 0, 1],
  ]);
  expect(files[0]?.hunks.map(({ number, oldStart, newStart, heading }) => [number, oldStart, newStart, heading])).toEqual([
    [1, 18, 18, "class TokenBucket"],
    [2, 40, 41, ""],
  ]);
});

test("a changed line that looks like a header stays a line", () => {
  const file = one(textPatch("a.sql", "@@ -1,2 +1,2 @@\n--- comment\n+++ other\n-diff --git a/x b/x\n+y"));
  expect(file.path).toBe("a.sql");
  expect(file.hunks[0]?.lines).toEqual(["--- comment", "+++ other", "-diff --git a/x b/x", "+y"]);
});

test("names that git quotes are read as they are", () => {
  const text = '"a/\\355\\225\\234 \\"q\\"\\t.py"';
  const file = one(`diff --git ${text} ${text.replace("a/", "b/")}\nindex 1..2 100644\n--- ${text}\n+++ ${text.replace("a/", "b/")}\n@@ -1 +1 @@\n-a\n+b\n`);
  expect(file.path).toBe('한 "q"\t.py');
});

test("the tab that git ends a name with a blank with is no part of it, quoted or not", () => {
  for (const [there, name] of [["a b.py", "a b.py"], ['"b/a \\n.py"', "a \n.py"]] as const) {
    const [quoted, bare] = [there.startsWith('"'), there.replace('"b/', '"a/')];
    const [old, fresh] = quoted ? [bare, there] : [`a/${there}`, `b/${there}`];
    const file = one(`diff --git ${old} ${fresh}\nindex 1..2 100644\n--- ${old}\t\n+++ ${fresh}\t\n@@ -1 +1 @@\n-a\n+b\n`);
    expect(file.path).toBe(name);
  }
});

test("a quoted name without lines is read whole, whatever is in it", () => {
  const file = one('diff --git "a/q\\" x" "b/q\\" x"\nold mode 100644\nnew mode 100755\n');
  expect(file.path).toBe('q" x');
});

test("a change of mode can be chosen as hunk 0, and a file without lines has its name", () => {
  const file = one("diff --git a/run me.sh b/run me.sh\nold mode 100644\nnew mode 100755\n");
  expect([file.path, choosable(file), file.newMode]).toEqual(["run me.sh", [0], "100755"]);
});

test("new, deleted, binary and linked files are whole or not at all", () => {
  const link = "diff --git a/l b/l\nindex 1111111..2222222 120000\n--- a/l\n+++ b/l\n@@ -1 +1 @@\n-a\n+b\n";
  const binary = "diff --git a/p.png b/p.png\nindex 1111111..2222222 100644\nGIT binary patch\nliteral 3\nKcmZQz\n\nliteral 0\nHcmV?d\n\n";
  const files = parsePatch(newFile("n", ["a"]) + link + binary + goneFile("g", ["a"]));
  expect(files.map((file) => [file.path, file.whole, choosable(file)])).toEqual([
    ["n", true, []],
    ["l", true, []],
    ["p.png", true, []],
    ["g", true, []],
  ]);
  expect(files[2]?.binary).toBe(true);
});

test("a file that becomes a link is one file", () => {
  const files = parsePatch(goneFile("t", ["a"]) + newFile("t", ["b"]));
  expect(files).toMatchObject([{ path: "t", status: "modified", whole: true, added: 1, removed: 1 }]);
});

test("a last line without an end belongs to its hunk", () => {
  const file = one(textPatch("a", "@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+b\n\\ No newline at end of file"));
  expect(file.hunks[0]?.lines).toHaveLength(4);
});

test("what is cut off or no patch at all is read as far as it goes", () => {
  expect(parsePatch("")).toEqual([]);
  expect(parsePatch("<!doctype html>")).toEqual([]);
  expect(one(textPatch("a", "@@ -1,90 +1,90 @@\n a\n-b")).hunks[0]?.lines).toEqual([" a", "-b"]);
});

test("the fingerprint follows the content, also where the patch names none", () => {
  const first = one(textPatch("a", BUCKET));
  expect(fingerprint(one(textPatch("a", BUCKET)))).toBe(fingerprint(first));
  expect(fingerprint(one(textPatch("a", BUCKET, "1111111..9999999")))).not.toBe(fingerprint(first));
  const unnamed = (body: string) => fingerprint(one(`diff --git a/a b/a\n--- a/a\n+++ b/a\n${body}\n`));
  expect(unnamed("@@ -1 +1 @@\n-a\n+b")).not.toBe(unnamed("@@ -1 +1 @@\n-a\n+c"));
});
