import js from "@eslint/js";
import hooks from "eslint-plugin-react-hooks";
import { defineConfig } from "eslint/config";
import ts from "typescript-eslint";

const pure = "model/ is pure: no page, no network, no clock. Hand it in as a value.";

export default defineConfig(
  { ignores: ["dist/", "node_modules/", "src/api/types.ts"] },
  js.configs.recommended,
  {
    files: ["**/*.{ts,tsx}"],
    extends: [ts.configs.strictTypeChecked, ts.configs.stylisticTypeChecked],
    languageOptions: { parserOptions: { project: "./tsconfig.json" } },
    rules: {
      "@typescript-eslint/restrict-template-expressions": ["error", { allowNumber: true }],
      "@typescript-eslint/switch-exhaustiveness-check": ["error", { considerDefaultExhaustiveForUnions: true }],
    },
  },
  { files: ["**/*.{ts,tsx}"], extends: [hooks.configs.flat.recommended] },
  { files: ["checks/*.mjs"], languageOptions: { globals: { URL: "readonly", console: "readonly", process: "readonly" } } },
  {
    files: ["src/model/**/*.ts"],
    rules: {
      "no-restricted-globals": [
        "error",
        ...["window", "document", "location", "fetch", "EventSource", "setTimeout", "performance"].map(
          (name) => ({ name, message: pure }),
        ),
      ],
      "no-restricted-imports": ["error", { patterns: [{ group: ["react*", "**/views/*", "**/shell/*", "**/parts/*"], message: pure }] }],
    },
  },
);
