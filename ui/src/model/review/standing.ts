// How a waiting proposal stands among the others.

import type { ShownProposal } from "../../api/types.ts";

export interface Overlaps {
  /** The other tasks, by name. */
  readonly others: readonly string[];
  readonly files: (other: string) => number;
  readonly paths: ReadonlyMap<string, readonly string[]>;
}

/** `run/proposal` as people know it: the task, without its round; the run only when it is another. */
function named(name: string, runId: string): string {
  const task = name.startsWith(`${runId}/`) ? name.slice(runId.length + 1) : name;
  return task.replace(/\.r\d+$/, "");
}

/** Those that do not merge by themselves, by the other task. */
export function overlapsOf({ overlaps = [], runId, proposalId }: ShownProposal): Overlaps {
  const paths = new Map<string, string[]>();
  for (const { proposals, path, kind } of overlaps) {
    if (kind === "same_change" || kind === "same_file") continue;
    for (const name of proposals) {
      if (name === `${runId}/${proposalId}`) continue;
      const other = named(name, runId);
      const known = paths.get(other) ?? [];
      if (!known.includes(path)) known.push(path);
      paths.set(other, known);
    }
  }
  return { others: [...paths.keys()], files: (other) => paths.get(other)?.length ?? 0, paths };
}
