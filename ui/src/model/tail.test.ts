import { expect, test } from "vitest";
import { AT_END, grown, scrolled } from "./tail.ts";

test("at the end, growing leaves nothing unseen", () => {
  expect(grown(AT_END, 5)).toEqual(AT_END);
});

test("a reader who scrolled up is told how much came since, until the end is reached", () => {
  const reading = grown(grown(scrolled(AT_END, false), 2), 3);
  expect(reading).toEqual({ following: false, unseen: 5 });
  expect(scrolled(reading, false)).toBe(reading);
  expect(scrolled(reading, true)).toEqual(AT_END);
});
