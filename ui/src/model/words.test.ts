import { expect, test } from "vitest";
import { clipped, codeRuns, duration, nameOf, plural } from "./words.ts";

test.each([
  [40, "40 ms"],
  [1499, "1 s"],
  [61_000, "1m 01s"],
  [3_720_000, "1h 02m"],
])("%i ms is %s", (ms, words) => {
  expect(duration(ms)).toBe(words);
});

test("one file, two files", () => {
  expect([plural(1, "file"), plural(1200, "file")]).toEqual(["1 file", "1,200 files"]);
});

test("an agent without a name is called by its id", () => {
  expect(nameOf({ a: "Ada" }, "a")).toBe("Ada");
  expect(nameOf({}, "orchestrator")).toBe("Orchestrator");
  expect(nameOf({}, "person:you")).toBe("You");
});

test("a short text is whole; many lines are cut and kept", () => {
  expect(clipped(" one\ntwo ")).toEqual({ start: "one\ntwo" });
  const lines = Array.from({ length: 20 }, (_, index) => `line ${index}`).join("\n");
  expect(clipped(lines)).toMatchObject({ whole: lines });
});

test("backticks make code, and an open one does not", () => {
  expect(codeRuns("see `a.py` and `b")).toEqual([
    { code: false, text: "see " },
    { code: true, text: "a.py" },
    { code: false, text: " and `b" },
  ]);
});
