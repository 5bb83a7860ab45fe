// Which files and hunks a person wants to apply. What is kept is what was left out, so that at first
// everything is chosen, also of a file that a revision adds.

import { type FilePatch, choosable } from "./patch.ts";

/** By path: "all" of it, or some of its hunks. */
export type LeftOut = Readonly<Record<string, "all" | readonly number[]>>;

/** As the server takes it: without hunks the whole file. */
export interface FileChoice {
  readonly path: string;
  readonly hunks?: readonly number[];
}

export type Chosen = "all" | "some" | "none";

export function chosenOf(out: LeftOut, file: FilePatch): Chosen {
  const left = Object.hasOwn(out, file.path) ? out[file.path] : undefined;
  if (left === undefined) return "all";
  return left === "all" ? "none" : "some";
}

export function takesHunk(out: LeftOut, file: FilePatch, hunk: number): boolean {
  const left = Object.hasOwn(out, file.path) ? out[file.path] : undefined;
  return left === undefined || (left !== "all" && !left.includes(hunk));
}

export function withFile(out: LeftOut, file: FilePatch, take: boolean): LeftOut {
  const others = Object.entries(out).filter(([path]) => path !== file.path);
  return Object.fromEntries(take ? others : [...others, [file.path, "all"] as const]);
}

/** A file none of whose hunks is wanted is left out whole; one taken whole or not has none. */
export function withHunk(out: LeftOut, file: FilePatch, hunk: number, take: boolean): LeftOut {
  const all = choosable(file);
  if (!all.includes(hunk)) return out;
  const left = all.filter((number) => (number === hunk ? !take : !takesHunk(out, file, number)));
  if (!left.length) return withFile(out, file, true);
  if (left.length === all.length) return withFile(out, file, false);
  return { ...withFile(out, file, true), [file.path]: left };
}

/** What to apply; undefined when it is everything, empty when it is nothing. */
export function choicesOf(out: LeftOut, files: readonly FilePatch[]): readonly FileChoice[] | undefined {
  if (files.every((file) => chosenOf(out, file) === "all")) return undefined;
  return files.flatMap((file): readonly FileChoice[] => {
    const chosen = chosenOf(out, file);
    if (chosen === "none") return [];
    if (chosen === "some") {
      return [{ path: file.path, hunks: choosable(file).filter((number) => takesHunk(out, file, number)) }];
    }
    // A rename is stored as two files (D14), and half of it would be no rename.
    return file.from === undefined ? [{ path: file.path }] : [{ path: file.from }, { path: file.path }];
  });
}

/** How many files are taken, whole or in part. */
export const countChosen = (out: LeftOut, files: readonly FilePatch[]): number =>
  files.filter((file) => chosenOf(out, file) !== "none").length;
