import { useRuns } from "../api/queries.ts";
import type { RunSummary } from "../api/types.ts";
import { chosenOf } from "../model/run.ts";
import { useRoute } from "./route.ts";

/** The run that every view is about: the one the address names, or the one that goes on. */
export function useCurrentRun(): string | null {
  const named = useRoute().run;
  const { data } = useRuns();
  return named ?? (data ? chosenOf(data.runs) : null);
}

export function useSummary(runId: string | null): RunSummary | null {
  const { data } = useRuns();
  return data?.runs.find((run) => run.runId === runId) ?? null;
}
