import { useMemo } from "react";
import { useAsks, useRuns } from "../api/queries.ts";
import { type PlainKey, useT } from "../i18n/index.ts";
import { isOver } from "../model/run.ts";
import { titleOf } from "../model/words.ts";
import { toast } from "../parts/toast.tsx";
import { VIEWS } from "../views/index.ts";
import { type Action, modifier, useActions } from "./actions.ts";
import { useCurrentRun, useSummary } from "./current.ts";
import { mayNotify } from "./notice.ts";
import { LANGUAGES, type Language, THEMES, usePrefs } from "./prefs.ts";
import { go, useRoute } from "./route.ts";
import { useShell } from "./state.ts";

/** What can be done from every view. */
export function usePageActions(): void {
  const t = useT();
  const runId = useCurrentRun();
  const status = useSummary(runId)?.status;
  const asks = useAsks().data?.asks.length ?? 0;
  const runs = useRuns().data?.runs;
  const { theme, language, notify, choose } = usePrefs();
  const isRuns = useRoute().view === "runs";

  const views = useMemo((): Action[] => {
    const group = t("group.views");
    const named: Partial<Record<string, PlainKey>> = { report: "go.report", review: "go.review" };
    return VIEWS.map(({ id, title, key, ofRun }) => ({
      id: `go.${id}`,
      title: named[id] ? t(named[id]) : t("go.view", { view: t(title) }),
      group,
      keys: `g ${key}`,
      run: () => {
        go({ view: id, ...(!ofRun && { run: null }) });
      },
    }));
  }, [t]);
  useActions(views);

  const page = useMemo((): Action[] => {
    const group = t("group.page");
    const { open } = useShell.getState();
    return [
      { id: "commands", title: t("help.commandBar"), group, keys: `${modifier()} K`, hidden: true, run: () => { open("commands"); } },
      { id: "help", title: t("help.open"), group, keys: "?", run: () => { open("help"); } },
      { id: "escape", title: t("help.escape"), group, keys: "Esc", hidden: true, run: () => undefined },
      {
        id: "asks",
        title: t("go.inbox"),
        group: t("group.run"),
        keys: "i",
        disabled: asks > 0 ? undefined : t("inbox.none"),
        run: () => { open("asks"); },
      },
      {
        id: "stop",
        title: t("stop.run"),
        group: t("group.run"),
        disabled: status === undefined || isOver(status) ? t("stop.notRunning") : undefined,
        run: () => { open("stop"); },
      },
      { id: "runs.start", title: t("start.title"), group: t("view.runs"), keys: isRuns ? "c" : undefined, run: () => { go({ view: "runs", run: null, args: { over: "start" } }); } },
      { id: "runs.clean", title: t("clean.title"), group: t("view.runs"), run: () => { go({ view: "runs", run: null, args: { over: "clean" } }); } },
      ...THEMES.filter((one) => one !== theme).map((one) => ({
        id: `theme.${one}`,
        title: t(`theme.${one}`),
        group,
        run: () => { choose({ theme: one }); },
      })),
      ...(Object.keys(LANGUAGES) as Language[])
        .filter((one) => one !== language)
        .map((one) => ({
          id: `language.${one}`,
          title: t("language.choose", { language: LANGUAGES[one] }),
          group,
          run: () => { choose({ language: one }); },
        })),
      {
        id: "notify",
        title: t(notify ? "notify.off" : "notify.on"),
        group,
        run: () => {
          if (notify) choose({ notify: false });
          else {
            void mayNotify().then((may) => {
              if (may) choose({ notify: true });
              else toast(t("notify.refused"), { tone: "warn" });
            });
          }
        },
      },
    ];
  }, [t, theme, language, notify, choose, status, asks, isRuns]);
  useActions(page);

  const others = useMemo(
    (): Action[] =>
      (runs ?? []).slice(0, 30).map((run) => ({
        id: `run.${run.runId}`,
        title: titleOf(run.request, run.runId),
        group: t("group.runs"),
        run: () => { go({ view: "run", run: run.runId }); },
      })),
    [t, runs],
  );
  useActions(others);
}
