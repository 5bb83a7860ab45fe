import { expect, test } from "vitest";
import { arrival, parseCursor } from "./cursor.ts";

test("a place is an epoch, which may hold dashes, and a number", () => {
  expect(parseCursor("9f-3c-128")).toEqual({ epoch: "9f-3c", seq: 128 });
});

test.each(["", "12", "-12", "epoch-", "epoch-x", "epoch-1.5"])("%j is no place", (text) => {
  expect(parseCursor(text)).toBeNull();
});

test("only a later number of the same log is new", () => {
  const seen = { epoch: "a", seq: 7 };
  expect(arrival(seen, { epoch: "a", seq: 8 })).toBe("new");
  expect(arrival(seen, { epoch: "a", seq: 7 })).toBe("seen");
  expect(arrival(seen, { epoch: "b", seq: 8 })).toBe("foreign");
});
