import { expect, test } from "vitest";
import { en } from "./en.ts";
import { ko } from "./ko.ts";
import { type Key, speaker } from "./say.ts";
import { zh } from "./zh.ts";

test("one and many have words of their own, and numbers are grouped", () => {
  const t = speaker("en");
  expect(t("nav.needsYou", { count: 1 })).toBe("1 needs you");
  expect(t("nav.needsYou", { count: 1200 })).toBe("1,200 need you");
});

test("what is filled in is taken as it is", () => {
  expect(speaker("en")("go.view", { view: "{view}$&" })).toBe("Go to {view}$&");
});

const names = (text: string): readonly string[] => [...new Set(text.match(/\{\w+\}/g))].sort();

test.each(Object.keys(en) as Key[])("%s holds the same names in every language", (key) => {
  expect(names(ko[key])).toEqual(names(en[key]));
  expect(names(zh[key])).toEqual(names(en[key]));
});
