// What can be done with the run that is shown, whichever view shows it.

import { useMemo } from "react";
import { address, post } from "../api/client.ts";
import { useFeed } from "../api/feeds.ts";
import type { StartedView } from "../api/types.ts";
import { useT } from "../i18n/index.ts";
import { type RunView, isOver } from "../model/run.ts";
import { nameOf } from "../model/words.ts";
import { plain } from "../model/plain.ts";
import { complain } from "../parts/toast.tsx";
import { type Action, useActions } from "./actions.ts";
import { useCurrentRun, useSummary } from "./current.ts";
import { go } from "./route.ts";
import { useShell } from "./state.ts";

/** Go on with a run that was stopped or interrupted. */
export function resume(runId: string): void {
  post(address(["runs", runId, "resume"])).then(() => { go({ view: "run", run: runId }); }, complain);
}

/** Begin the same again, as a run of its own. */
export function retry(runId: string): void {
  post<StartedView>(address(["runs", runId, "retry"])).then((next) => { go({ view: "run", run: next.runId }); }, complain);
}

export const canResume = (status: RunView["status"] | undefined): boolean => status === "interrupted" || status === "stopped";

const NOBODY: RunView["team"] = [];
const NOTHING: RunView["turns"] = [];
const NAMELESS: RunView["names"] = {};

/** A component that shows nothing, so that what happens in the run draws nothing else again. */
export function RunActions(): null {
  const t = useT();
  const runId = useCurrentRun();
  const feed = useFeed(runId);
  const summary = useSummary(runId);
  const status = feed?.run.status ?? summary?.status;
  const { team, turns, names } = feed?.run ?? { team: NOBODY, turns: NOTHING, names: NAMELESS };
  // A step of a turn makes it another one, and changes nothing here.
  const working = [...new Set(turns.map(({ agent }) => agent))].join("\n");
  useActions(
    useMemo((): Action[] => {
      if (runId === null) return [];
      const group = t("group.run");
      return [
        {
          id: "run.resume",
          title: t("run.resume"),
          group,
          disabled: canResume(status) ? undefined : t("run.notResumable"),
          run: () => { resume(runId); },
        },
        {
          id: "run.retry",
          title: t("run.retry"),
          group,
          disabled: status !== undefined && isOver(status) ? undefined : t("run.notOver"),
          run: () => { retry(runId); },
        },
        ...working.split("\n").filter(Boolean).map((agent): Action => {
          const name = plain(nameOf(names, agent));
          return {
            id: `run.stop.${agent}`,
            title: t("stopWork.of", { name }),
            group,
            run: () => { useShell.getState().ask({ type: "stopWork", runId, agent, name }); },
          };
        }),
        ...team.map(({ id, name }): Action => ({
          id: `go.transcript.${id}`,
          title: t("run.transcriptOf", { name: plain(name) }),
          group: t("view.transcript"),
          run: () => { go({ view: "transcript", run: runId, args: { agent: id } }); },
        })),
      ];
    }, [t, runId, status, team, names, working]),
  );
  return null;
}
