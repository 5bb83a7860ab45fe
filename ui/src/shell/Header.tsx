import { Search, Square, User } from "lucide-react";
import { useFeed } from "../api/feeds.ts";
import { useServer } from "../api/queries.ts";
import { useT } from "../i18n/index.ts";
import { isOver } from "../model/run.ts";
import { titleOf } from "../model/words.ts";
import { Button } from "../parts/Button.tsx";
import { Kbd } from "../parts/Kbd.tsx";
import { Pill } from "../parts/Pill.tsx";
import { useCounts } from "./Nav.tsx";
import { modifier } from "./actions.ts";
import { useCurrentRun, useSummary } from "./current.ts";
import { useShell } from "./state.ts";

export function Header() {
  const t = useT();
  const { data: server } = useServer();
  const runId = useCurrentRun();
  const feed = useFeed(runId);
  const summary = useSummary(runId);
  const { asks } = useCounts();
  const open = useShell((shell) => shell.open);
  const status = feed?.run.status ?? summary?.status;
  const request = feed?.run.request ?? summary?.request ?? "";
  return (
    <header className="head">
      <span className="brand">
        <img src="/icon.svg" alt="" width="20" height="20" />
        <span className="wide">AgentCanvas</span>
      </span>
      {server && (
        <span className="workspace wide" title={server.root}>
          {folderOf(server.root)}
        </span>
      )}
      <h1 className="ellipsis" title={request}>
        {runId === null ? <span className="unseen">AgentCanvas</span> : titleOf(request, runId)}
      </h1>
      {status && <Pill status={status} />}
      <span className="grow" />
      <button
        type="button"
        className="command-button"
        aria-label={t("command.open")}
        onClick={() => {
          open("commands");
        }}
      >
        <Search size={14} strokeWidth={1.5} aria-hidden />
        <span className="ellipsis">{t("command.open")}</span>
        <Kbd keys={`${modifier()} K`} />
      </button>
      {asks > 0 && (
        <button
          type="button"
          className="needs-you"
          aria-label={t("nav.needsYou", { count: asks })}
          onClick={() => {
            open("asks");
          }}
        >
          <User size={14} strokeWidth={1.5} aria-hidden />
          <span aria-hidden="true">
            <span className="wide">{t("nav.needsYou", { count: asks })}</span>
            <span className="narrow">{asks}</span>
          </span>
        </button>
      )}
      <Button
        look="no"
        className="stop"
        blocked={status === undefined || isOver(status) ? t("stop.notRunning") : undefined}
        onClick={() => {
          open("stop");
        }}
      >
        <Square size={12} fill="currentColor" aria-hidden />
        {t("stop")}
      </Button>
    </header>
  );
}

const folderOf = (root: string): string => root.split(/[/\\]/).findLast((part) => part !== "") ?? root;
