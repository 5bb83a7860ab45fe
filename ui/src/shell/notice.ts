import { useEffect, useRef } from "react";
import { useAsks } from "../api/queries.ts";
import { t } from "../i18n/index.ts";
import { titleOf } from "../model/words.ts";
import { useCurrentRun, useSummary } from "./current.ts";
import { usePrefs } from "./prefs.ts";
import { go } from "./route.ts";

/** The title of the tab says how many things wait; the desktop is told of new ones, where wished. */
export function useNotice(): void {
  const asks = useAsks().data?.asks;
  const runId = useCurrentRun();
  const request = useSummary(runId)?.request ?? "";
  const known = useRef<ReadonlySet<string> | null>(null);
  const count = asks?.length ?? 0;

  useEffect(() => {
    const badge = count > 0 ? `(${count}) ` : "";
    const title = runId === null ? "" : `${titleOf(request, runId)} · `;
    document.title = `${badge}${title}AgentCanvas`;
  }, [count, request, runId]);

  useEffect(() => {
    if (!asks) return;
    const before = known.current;
    known.current = new Set(asks.map((ask) => ask.ask_id));
    const fresh = before === null ? [] : asks.filter((ask) => !before.has(ask.ask_id));
    if (!usePrefs.getState().notify || !document.hidden || !canNotify()) return;
    for (const ask of fresh) notify(titleOf(ask.text, ask.scope), ask.ask_id);
  }, [asks]);
}

function canNotify(): boolean {
  return typeof Notification !== "undefined" && Notification.permission === "granted";
}

/** All tabs tell it under the same name, so that the desktop shows it once. */
function notify(body: string, askId: string): void {
  try {
    const shown = new Notification(t("notify.title"), { body, tag: askId });
    shown.onclick = () => {
      window.focus();
      go({ view: "inbox", run: null });
      shown.close();
    };
  } catch {
    // The browsers of some phones let no page do it; the title of the tab tells it as well.
  }
}

/** Ask the browser for its permission; it wants to hear that from a press or a click. */
export async function mayNotify(): Promise<boolean> {
  return typeof Notification !== "undefined" && (await Notification.requestPermission()) === "granted";
}
