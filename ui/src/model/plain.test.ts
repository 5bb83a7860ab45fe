import { expect, test } from "vitest";
import { plain } from "./plain.ts";

test("the colours, titles and movements of a terminal are taken out, and lines stay", () => {
  expect(plain("\u001b[31mred\u001b[0m\r\nnext\u001b]0;title\u0007\tend\u0000\u009b")).toBe("red\nnext\tend");
});

test("marks that turn the direction of writing are made visible", () => {
  expect(plain("user\u202etxt.exe\u2069")).toBe("user\ufffdtxt.exe\ufffd");
});

test.each(["한국어 텍스트", "中文文本", "עברית", "a < b && c > d", "👩‍💻 é"])("%s stays as it is", (text) => {
  expect(plain(text)).toBe(text);
});
