// What a person has looked at, kept with what it was: a file that changes is unseen again.

import { type FilePatch, fingerprint } from "./patch.ts";

/** By path, the fingerprint of what was seen there. */
export type Seen = Readonly<Record<string, string>>;

export const isSeen = (seen: Seen, file: FilePatch): boolean =>
  Object.hasOwn(seen, file.path) && seen[file.path] === fingerprint(file);

/** Seen before, but not as it is now. */
export const hasChanged = (seen: Seen, file: FilePatch): boolean =>
  Object.hasOwn(seen, file.path) && seen[file.path] !== fingerprint(file);

export function withSeen(seen: Seen, file: FilePatch, is: boolean): Seen {
  const others = Object.entries(seen).filter(([path]) => path !== file.path);
  return Object.fromEntries(is ? [...others, [file.path, fingerprint(file)]] : others);
}

export const countSeen = (seen: Seen, files: readonly FilePatch[]): number =>
  files.filter((file) => isSeen(seen, file)).length;

/** The next file that is unseen, after this one and then from the top; none when all are seen. */
export function nextUnseen(seen: Seen, files: readonly FilePatch[], after: number): number | null {
  for (let step = 1; step <= files.length; step += 1) {
    const index = (after + step) % files.length;
    const file = files[index];
    if (file && !isSeen(seen, file)) return index;
  }
  return null;
}
