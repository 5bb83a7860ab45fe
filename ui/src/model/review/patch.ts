// A unified git patch as files, hunks and lines. Numbers of hunks are those by which the server lets
// a person choose them: 1, 2, … in the order of the patch, and 0 for the change of a file's mode.

export type FileStatus = "added" | "deleted" | "modified" | "renamed";

export interface Hunk {
  readonly number: number;
  readonly oldStart: number;
  readonly oldCount: number;
  readonly newStart: number;
  readonly newCount: number;
  readonly heading: string;
  /** Each line with its sign: " ", "-", "+", or "\" for a last line without an end. */
  readonly lines: readonly string[];
}

export interface FilePatch {
  readonly path: string;
  /** Where a renamed file was before. */
  readonly from?: string;
  readonly status: FileStatus;
  /** Names of the contents, empty where the patch does not say them. */
  readonly oldId: string;
  readonly newId: string;
  readonly oldMode: string;
  readonly newMode: string;
  readonly binary: boolean;
  /** Taken whole or not at all: its hunks cannot be chosen one by one. */
  readonly whole: boolean;
  readonly hunks: readonly Hunk[];
  readonly added: number;
  readonly removed: number;
}

export const MODE_CHANGE = 0;
const LINK_MODE = "120000";

/** The files of a patch, in its order; what no git would write is passed over, never thrown at. */
export function parsePatch(text: string): readonly FilePatch[] {
  const lines = text.split("\n");
  if (lines.at(-1) === "") lines.pop();
  const files: FilePatch[] = [];
  let at = 0;
  while (at < lines.length) {
    if (!lines[at]?.startsWith("diff --git ")) {
      at += 1;
      continue;
    }
    const [file, next] = readSection(lines, at);
    const last = files.at(-1);
    if (last?.path === file.path) files[files.length - 1] = retyped(last, file);
    else files.push(file);
    at = next;
  }
  return files;
}

/** The hunks that can be chosen; none where the file is whole or not at all. */
export function choosable(file: FilePatch): readonly number[] {
  if (file.whole) return [];
  const numbers = file.hunks.map((hunk) => hunk.number);
  return changesMode(file) ? [MODE_CHANGE, ...numbers] : numbers;
}

export function changesMode(file: FilePatch): boolean {
  return file.oldMode !== "" && file.newMode !== "" && file.oldMode !== file.newMode;
}

/** Stands for what a file becomes, so that a mark made for one content does not hold for another. */
export function fingerprint(file: FilePatch): string {
  const content = file.newId && file.oldId ? `${file.oldId}-${file.newId}` : textMark(file);
  return `${file.status}:${file.newMode}:${content}`;
}

function textMark(file: FilePatch): string {
  let mark = 0;
  for (const hunk of file.hunks) {
    for (const line of hunk.lines) {
      for (let i = 0; i < line.length; i += 1) mark = (Math.imul(mark, 31) + line.charCodeAt(i)) | 0;
      mark = (Math.imul(mark, 31) + 10) | 0;
    }
  }
  return (mark >>> 0).toString(36);
}

const HUNK = /^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@ ?(.*)$/;
const MODE = /^(old mode|new mode|new file mode|deleted file mode) (\d+)$/;
const INDEX = /^index ([0-9a-f]+)\.\.([0-9a-f]+)(?: (\d+))?$/;

function readSection(lines: readonly string[], start: number): [FilePatch, number] {
  const modes = new Map<string, string>();
  let ids = ["", ""];
  let sameMode = "";
  let binary = false;
  let named = "";
  const hunks: Hunk[] = [];
  let at = start + 1;
  for (; at < lines.length; at += 1) {
    const line = lines[at] ?? "";
    if (line.startsWith("diff --git ")) break;
    const hunk = HUNK.exec(line);
    if (hunk) {
      const read = readHunk(lines, at, hunk, hunks.length + 1);
      hunks.push(read);
      at += read.lines.length;
      continue;
    }
    const mode = MODE.exec(line);
    if (mode?.[1] && mode[2]) modes.set(mode[1], mode[2]);
    const index = INDEX.exec(line);
    if (index) [ids, sameMode] = [[index[1] ?? "", index[2] ?? ""], index[3] ?? ""];
    if (line === "GIT binary patch" || line.startsWith("Binary files ")) binary = true;
    if (line.startsWith("--- ") || line.startsWith("+++ ")) named = nameAfter(line.slice(4)) || named;
  }
  const created = modes.get("new file mode");
  const deleted = modes.get("deleted file mode");
  const oldMode = modes.get("old mode") ?? deleted ?? sameMode;
  const newMode = modes.get("new mode") ?? created ?? sameMode;
  const status = created !== undefined ? "added" : deleted !== undefined ? "deleted" : "modified";
  const file: FilePatch = {
    path: named || nameInStart(lines[start] ?? ""),
    status,
    oldId: ids[0] ?? "",
    newId: ids[1] ?? "",
    oldMode,
    newMode,
    binary,
    whole: status !== "modified" || binary || oldMode === LINK_MODE || newMode === LINK_MODE,
    hunks,
    ...counted(hunks),
  };
  return [file, at];
}

function readHunk(lines: readonly string[], start: number, found: RegExpExecArray, number: number): Hunk {
  const oldCount = Number(found[2] ?? 1);
  const newCount = Number(found[4] ?? 1);
  const body: string[] = [];
  let [old, fresh] = [oldCount, newCount];
  for (let at = start + 1; at < lines.length; at += 1) {
    const line = lines[at] ?? "";
    const sign = line.charAt(0);
    if (sign === "\\") {
      body.push(line);
      continue;
    }
    if (old <= 0 && fresh <= 0) break;
    if (sign !== " " && sign !== "-" && sign !== "+" && line !== "") break;
    if (sign !== "+") old -= 1;
    if (sign !== "-") fresh -= 1;
    body.push(line === "" ? " " : line);
  }
  return {
    number,
    oldStart: Number(found[1]),
    oldCount,
    newStart: Number(found[3]),
    newCount,
    heading: found[5] ?? "",
    lines: body,
  };
}

function counted(hunks: readonly Hunk[]): { added: number; removed: number } {
  let added = 0;
  let removed = 0;
  for (const hunk of hunks) {
    for (const line of hunk.lines) {
      if (line.startsWith("+")) added += 1;
      else if (line.startsWith("-")) removed += 1;
    }
  }
  return { added, removed };
}

/** A file that becomes another type, a link for one, comes as two sections of one name. */
function retyped(gone: FilePatch, made: FilePatch): FilePatch {
  const hunks = [...gone.hunks, ...made.hunks].map((hunk, index) => ({ ...hunk, number: index + 1 }));
  return {
    ...gone,
    status: "modified",
    newId: made.newId,
    newMode: made.newMode,
    binary: gone.binary || made.binary,
    whole: true,
    hunks,
    added: gone.added + made.added,
    removed: gone.removed + made.removed,
  };
}

/** The one name of the first line: without renames it is there twice. */
function nameInStart(line: string): string {
  const rest = line.slice("diff --git ".length);
  if (rest.startsWith('"')) return nameAfter(rest.slice(0, (rest.length - 1) / 2));
  const length = (rest.length - " b/".length - "a/".length) / 2;
  return rest.slice("a/".length, "a/".length + Math.max(0, Math.floor(length)));
}

function nameAfter(line: string): string {
  // git ends a name that holds a blank with a tab, also behind the quotes.
  const said = line.replace(/\t$/, "");
  const plain = said.startsWith('"') ? unquoted(said) : said;
  return plain === "/dev/null" ? "" : plain.replace(/^[ab]\//, "");
}

const ESCAPES: Readonly<Record<string, number>> = { a: 7, b: 8, t: 9, n: 10, v: 11, f: 12, r: 13, '"': 34, "\\": 92 };

/** A name as git quotes it: bytes outside ASCII are octal, and together they are UTF-8. */
function unquoted(said: string): string {
  const bytes: number[] = [];
  const inner = said.replace(/^"|"$/g, "");
  for (let i = 0; i < inner.length; i += 1) {
    if (inner[i] !== "\\") {
      bytes.push(...new TextEncoder().encode(inner[i]));
      continue;
    }
    const octal = /^[0-7]{3}/.exec(inner.slice(i + 1, i + 4));
    bytes.push(octal ? parseInt(octal[0], 8) : (ESCAPES[inner[i + 1] ?? ""] ?? 63));
    i += octal ? 3 : 1;
  }
  return new TextDecoder().decode(new Uint8Array(bytes));
}
