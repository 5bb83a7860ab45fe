// Which language a file is written in, by its name; empty where it is shown without colours.

const BY_END: Readonly<Record<string, string>> = {
  bash: "bash", c: "c", cc: "cpp", cfg: "ini", cjs: "javascript", conf: "ini", cpp: "cpp", cs: "csharp", css: "css",
  cts: "typescript", cxx: "cpp", diff: "diff", go: "go", h: "c", hpp: "cpp", htm: "xml", html: "xml", ini: "ini",
  java: "java", js: "javascript", json: "json", jsonc: "json", jsx: "javascript", kt: "kotlin", kts: "kotlin",
  lua: "lua", md: "markdown", mjs: "javascript", mk: "makefile", mts: "typescript", patch: "diff", php: "php",
  proto: "protobuf", py: "python", pyi: "python", r: "r", rb: "ruby", rs: "rust", scss: "scss", sh: "bash",
  sql: "sql", svelte: "xml", svg: "xml", swift: "swift", toml: "ini", ts: "typescript", tsx: "typescript", vue: "xml",
  xml: "xml", yaml: "yaml", yml: "yaml", zsh: "bash",
};
const BY_NAME: Readonly<Record<string, string>> = {
  Dockerfile: "dockerfile", Makefile: "makefile", GNUmakefile: "makefile", Gemfile: "ruby", Rakefile: "ruby",
  ".bashrc": "bash", ".gitconfig": "ini", ".editorconfig": "ini",
};

export function languageOf(path: string): string {
  const name = path.slice(path.lastIndexOf("/") + 1);
  if (Object.hasOwn(BY_NAME, name)) return BY_NAME[name] ?? "";
  const end = name.slice(name.lastIndexOf(".") + 1).toLowerCase();
  return Object.hasOwn(BY_END, end) ? (BY_END[end] ?? "") : "";
}

const PICTURES: ReadonlySet<string> = new Set(["png", "jpg", "jpeg", "gif", "webp"]);

/** Whether the browser can show it as a picture; SVG is text here, for it can hold scripts. */
export const isPicture = (path: string): boolean => PICTURES.has(path.slice(path.lastIndexOf(".") + 1).toLowerCase());
