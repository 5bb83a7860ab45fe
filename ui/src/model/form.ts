// A form from the JSON Schema of an answer, as far as people fill in forms: words, numbers, choices.
// What is more than that is written as JSON. Without a schema the answer is one text.

export interface Field {
  /** Empty for an answer that is one value. */
  readonly name: string;
  readonly label: string;
  readonly kind: "text" | "number" | "boolean" | "json";
  readonly choices?: readonly string[];
  readonly required: boolean;
}

type Schema = Readonly<Record<string, unknown>>;

export function fieldsOf(schema: Schema | undefined): readonly Field[] {
  if (schema === undefined) return [{ name: "", label: "", kind: "text", required: true }];
  const properties = schema.properties;
  if (!isSchema(properties)) return [fieldOf("", schema, true)];
  const required = Array.isArray(schema.required) ? schema.required : [];
  return Object.entries(properties).map(([name, property]) =>
    fieldOf(name, isSchema(property) ? property : {}, required.includes(name)),
  );
}

function fieldOf(name: string, schema: Schema, required: boolean): Field {
  const label = [schema.title, schema.description, name].find((text) => typeof text === "string") ?? "";
  const base = { name, label, required };
  if (Array.isArray(schema.enum)) return { ...base, kind: "text", choices: schema.enum.map(String) };
  switch (schema.type) {
    case "boolean":
      return { ...base, kind: "boolean", choices: ["true", "false"] };
    case "number":
    case "integer":
      return { ...base, kind: "number" };
    case "string":
      return { ...base, kind: "text" };
    default:
      return { ...base, kind: "json" };
  }
}

/** The first field that is not filled in as it has to be; null when the form can be sent. */
export function missing(fields: readonly Field[], values: Readonly<Record<string, string>>): string | null {
  const wrong = fields.find((field) => {
    const value = values[field.name]?.trim() ?? "";
    if (value === "") return field.required;
    return valueOf(field, value) === undefined;
  });
  return wrong ? wrong.label || wrong.name || "…" : null;
}

export function contentOf(fields: readonly Field[], values: Readonly<Record<string, string>>): unknown {
  const [only] = fields;
  if (fields.length === 1 && only?.name === "") return valueOf(only, values[""] ?? "");
  return Object.fromEntries(
    fields.flatMap((field) => {
      const text = values[field.name]?.trim() ?? "";
      const value = text === "" ? undefined : valueOf(field, text);
      return value === undefined ? [] : [[field.name, value]];
    }),
  );
}

function valueOf({ kind }: Field, text: string): unknown {
  switch (kind) {
    case "text":
      return text;
    case "boolean":
      return text === "true";
    case "number":
      return text.trim() !== "" && Number.isFinite(Number(text)) ? Number(text) : undefined;
    case "json":
      try {
        return JSON.parse(text) as unknown;
      } catch {
        return undefined;
      }
  }
}

const isSchema = (value: unknown): value is Schema => typeof value === "object" && value !== null && !Array.isArray(value);
