import { address, get, post } from "../../api/client.ts";
import type { RunOrder, StartedView } from "../../api/types.ts";

/** Begin a run with the flow of another and words of its own; gives its id. */
export async function followUp(runId: string, request: string): Promise<string> {
  const order = await get<RunOrder>(address(["runs", runId, "order"]));
  return begin({ ...order, request, parentRunId: runId });
}

export async function begin(order: RunOrder): Promise<string> {
  return (await post<StartedView>(address(["runs"]), order)).runId;
}
