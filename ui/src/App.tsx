import { type Dispatch, useEffect, useReducer } from "react";
import { type News, type Page, emptyPage, reduce } from "./model/page.ts";
import { Header } from "./run/Header.tsx";
import { Loading, Lost, NoRunYet } from "./run/Notices.tsx";
import { Side } from "./run/Side.tsx";
import { Timeline } from "./run/Timeline.tsx";
import { WaitingLine } from "./run/WaitingLine.tsx";
import { useRun, useRuns } from "./useServer.ts";

/** The address keeps the chosen run, so that a reload or a link shows the same. */
function runInAddress(): string | null {
  return new URLSearchParams(window.location.search).get("run");
}

export function App() {
  const [page, tell] = useReducer(reduce, null, () => emptyPage(runInAddress()));
  const lookAgain = useRuns(tell);
  const retryRun = useRun(page.runId, tell);

  useEffect(() => {
    const moved = () => {
      const runId = runInAddress();
      if (runId !== null) tell({ type: "chosen", runId });
    };
    window.addEventListener("popstate", moved);
    return () => {
      window.removeEventListener("popstate", moved);
    };
  }, []);

  useEffect(() => {
    document.title = title(page);
  }, [page]);

  return (
    <>
      <a className="skip" href="#main">
        Skip to the timeline
      </a>
      <div className="shell">
        <Header
          page={page}
          onChoose={(runId) => {
            window.history.pushState(null, "", `?${new URLSearchParams({ run: runId }).toString()}`);
            tell({ type: "chosen", runId });
          }}
        />
        <Main page={page} tell={tell} />
      </div>
      {page.link.state === "lost" && (
        <Lost
          link={page.link}
          upTo={page.feed?.cursor.seq ?? null}
          onRetry={() => {
            lookAgain();
            retryRun();
          }}
        />
      )}
    </>
  );
}

function Main({ page, tell }: { page: Page; tell: Dispatch<News> }) {
  const { runs, runId, feed } = page;
  if (feed && runId !== null) {
    return (
      <>
        <WaitingLine run={feed.run} runId={runId} />
        <main id="main" tabIndex={-1}>
          <Timeline key={runId} feed={feed} tell={tell} />
          <Side run={feed.run} />
        </main>
      </>
    );
  }
  return <main id="main">{runs?.length === 0 && runId === null ? <NoRunYet /> : <Loading />}</main>;
}

function title({ feed }: Page): string {
  if (!feed) return "AgentCanvas";
  const { asks, status, request } = feed.run;
  const needed = asks.length > 0 || status === "parked" ? "(needs you) " : "";
  return `${needed}${request.split("\n", 1)[0] ?? ""} · AgentCanvas`;
}
