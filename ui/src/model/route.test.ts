import { expect, test } from "vitest";
import { formatRoute, parseRoute } from "./route.ts";

test("an address comes back as it was, whatever the ids hold", () => {
  const route = { view: "review", run: "run 1/ü%?#", args: { task: "a/b?c#d", file: "한.py" } };
  expect(parseRoute(formatRoute(route))).toEqual(route);
});

test.each([
  ["", { view: "", run: null, args: {} }],
  ["#/", { view: "", run: null, args: {} }],
  ["#/runs", { view: "runs", run: null, args: {} }],
  ["#/run/%E0%A4%A", { view: "run", run: "%E0%A4%A", args: {} }],
])("%s is read without complaint", (fragment, route) => {
  expect(parseRoute(fragment)).toEqual(route);
});

test("what is empty is left out of the address", () => {
  expect(formatRoute({ view: "run", run: null, args: { q: "" } })).toBe("#/run");
});
