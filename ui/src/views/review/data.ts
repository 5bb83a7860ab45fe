// The proposals that are looked at: details from the server, patches as files.

import { useQuery } from "@tanstack/react-query";
import { address, get, getText, post } from "../../api/client.ts";
import { queries, staleAfter } from "../../api/queries.ts";
import type { Recorded, ShownProposal, UndoneView } from "../../api/types.ts";
import { type FilePatch, parsePatch } from "../../model/review/patch.ts";
import { withRenames } from "../../model/review/renames.ts";
import { inTreeOrder } from "../../model/review/tree.ts";

const MOVES: readonly Recorded["event"][] = [
  "proposal_submitted",
  "proposal_reviewed",
  "proposal_rechecked",
  "proposal_applied",
  "proposal_undone",
  "checks_run",
  "person_asked",
  "person_answered",
  "task_failed",
];
staleAfter("proposal", MOVES);
staleAfter("trail", MOVES);

export interface Which {
  readonly runId: string;
  readonly taskId: string;
}

const about = ({ runId, taskId }: Which, what: string, query: Readonly<Record<string, string | number | undefined>> = {}): string =>
  address(["runs", runId, "tasks", taskId, what], query);

export const proposalQuery = (which: Which, attempt?: number) => ({
  queryKey: ["proposal", which.runId, which.taskId, attempt ?? "latest"],
  queryFn: ({ signal }: { signal: AbortSignal }) => get<ShownProposal>(about(which, "proposal", { attempt }), { signal }),
});

export const useProposal = (which: Which, attempt?: number) => useQuery(proposalQuery(which, attempt));

/** The files of one attempt; they never change, so that they are fetched and read once. */
export function usePatch(which: Which, attempt: number | undefined) {
  return useQuery({
    queryKey: ["patch", which.runId, which.taskId, attempt],
    enabled: attempt !== undefined,
    gcTime: 60_000,
    structuralSharing: false,
    queryFn: async ({ signal }): Promise<readonly FilePatch[]> =>
      inTreeOrder(withRenames(parsePatch(await getText(about(which, "patch", { attempt }), { signal })))),
  });
}

/** All that is on record about a task, for whoever asks why. */
export const useTrail = (which: Which) =>
  useQuery({
    queryKey: ["trail", which.runId, which.taskId],
    queryFn: async ({ signal }) => {
      const { events } = await get<{ readonly events: readonly Recorded[] }>(about(which, "trail"), { signal });
      return events;
    },
  });

/** Where the content of a file is, for pictures and downloads. */
export const fileAddress = (which: Which, path: string, side: "before" | "after", attempt: number): string =>
  about(which, "file", { path, side, attempt });

export async function answer(askId: string, content: unknown): Promise<void> {
  await post(address(["asks", askId, "answer"]), { content });
  refresh();
}

export async function undo({ runId, taskId }: Which): Promise<UndoneView> {
  const undone = await post<UndoneView>(address(["runs", runId, "undo"]), { taskId });
  refresh();
  return undone;
}

function refresh(): void {
  for (const key of ["proposal", "asks", "runs"]) void queries.invalidateQueries({ queryKey: [key] });
}
