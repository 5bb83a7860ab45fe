import { expect, test } from "vitest";
import { contentOf, fieldsOf, missing } from "./form.ts";

const SCHEMA = {
  type: "object",
  required: ["choice", "count"],
  properties: {
    choice: { enum: ["a", "b"] },
    count: { type: "integer", title: "How many" },
    sure: { type: "boolean" },
    more: { type: "array" },
  },
};

test("without a schema an answer is one text", () => {
  const fields = fieldsOf(undefined);
  expect(missing(fields, { "": " " })).not.toBeNull();
  expect(contentOf(fields, { "": "yes, do" })).toBe("yes, do");
});

test("each property is a field of its kind", () => {
  expect(fieldsOf(SCHEMA)).toMatchObject([
    { name: "choice", choices: ["a", "b"], required: true },
    { label: "How many", kind: "number", required: true },
    { kind: "boolean", required: false },
    { kind: "json" },
  ]);
});

test("what is filled in becomes data of its kind; what is empty is left out", () => {
  const fields = fieldsOf(SCHEMA);
  const values = { choice: "b", count: "3", sure: "false", more: "" };
  expect(missing(fields, values)).toBeNull();
  expect(contentOf(fields, values)).toEqual({ choice: "b", count: 3, sure: false });
  expect(contentOf(fields, { ...values, more: "[1]" })).toMatchObject({ more: [1] });
});

test.each([
  [{ choice: "a" }, "How many"],
  [{ choice: "a", count: "many" }, "How many"],
  [{ choice: "a", count: "1", more: "[" }, "more"],
])("%j cannot be sent: %s", (values, field) => {
  expect(missing(fieldsOf(SCHEMA), values as unknown as Record<string, string>)).toBe(field);
});

test.each([{ type: "string" }, { enum: ["yes", "no"] }])("a schema of one value is one field", (schema) => {
  const fields = fieldsOf(schema);
  expect(contentOf(fields, { "": "yes" })).toBe("yes");
});

test.each([{ properties: [] }, { properties: { x: 3 } }, {}])("a strange schema becomes JSON, not an error", (schema) => {
  expect(fieldsOf(schema)[0]).toMatchObject({ kind: "json" });
});
