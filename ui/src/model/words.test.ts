import { expect, test } from "vitest";
import { about, clipped, codeRuns, dollars, duration, fenced, nameOf, plural } from "./words.ts";

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

test("what stands between fences is kept as it is, and an open fence goes on to the end", () => {
  const told = (text: string) => fenced(text).map(({ isCode, text: part }) => `${isCode ? "code" : "text"}: ${part}`);
  expect(told("Look:\n\n```py\n  x = 1\n```\nGood.")).toEqual(["text: Look:", "code:   x = 1", "text: Good."]);
  expect(told("````\n```\nin it\n````")).toEqual(["code: ```\nin it"]);
  expect(told("```\nnever closed\n~~~")).toEqual(["code: never closed\n~~~"]);
  expect(told("no `fence` here")).toEqual(["text: no `fence` here"]);
});

test("less than a cent is not called nothing", () => {
  expect([0, 0.001, 0.01, 2].map(dollars)).toEqual(["$0.00", "<$0.01", "$0.01", "$2.00"]);
});

test("figures that are guessed say so", () => {
  expect([about("8", true), about("8", false), about("<$0.01", true)]).toEqual(["≈ 8", "8", "<$0.01"]);
});
