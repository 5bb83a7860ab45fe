import type { RunStatus, RunSummary } from "../api/types.ts";
import type { Page } from "../model/page.ts";
import { dayAndTime, grouped } from "../model/words.ts";
import { Pill, statusWord } from "../parts/Pill.tsx";

interface Props {
  readonly page: Page;
  readonly onChoose: (runId: string) => void;
}

export function Header({ page, onChoose }: Props) {
  const status = page.feed?.run.status ?? page.runs?.find((run) => run.runId === page.runId)?.status;
  return (
    <header className="head">
      <span className="brand">
        <img src="/icon.svg" alt="" width="20" height="20" />
        <h1>AgentCanvas</h1>
      </span>
      {page.workspace && (
        <span className="workspace" title="Workspace">
          {page.workspace}
        </span>
      )}
      {page.runs && page.runs.length > 0 && (
        <label className="picker">
          <span className="unseen">Run</span>
          <select
            value={page.runId ?? ""}
            onChange={(event) => {
              onChoose(event.target.value);
            }}
          >
            {page.runs.map((run) => (
              <option key={run.runId} value={run.runId}>
                {optionText(run, run.runId === page.runId && status ? status : run.status)}
              </option>
            ))}
          </select>
        </label>
      )}
      {status && <Pill status={status} />}
      <span className="grow" />
      <Connection page={page} />
    </header>
  );
}

/** The list is a little behind the feed of the run that is shown, so that one's status is handed in. */
function optionText(run: RunSummary, status: RunStatus): string {
  const request = run.request.trim().split("\n", 1)[0] ?? "";
  const title = request.length > 64 ? `${request.slice(0, 63).trimEnd()}…` : request;
  return `${title || run.runId} · ${statusWord(status)} · ${dayAndTime(run.startedMs)}`;
}

function Connection({ page: { link, feed } }: { page: Page }) {
  const words = { connecting: "Connecting", live: "Live", paused: "Paused", lost: "Connection lost" }[link.state];
  const tone = { connecting: "muted", live: "ok", paused: "muted", lost: "danger" }[link.state];
  return (
    <span className="connection" data-state={link.state} role="status">
      <span className="dot" data-tone={tone} />
      <span>
        {words}
        {link.state === "live" && feed && <span className="wide">, event {grouped(feed.cursor.seq)}</span>}
      </span>
    </span>
  );
}
