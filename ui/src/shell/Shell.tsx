import { Suspense } from "react";
import { Plug } from "lucide-react";
import { retry, useLive } from "../api/feeds.ts";
import { useT } from "../i18n/index.ts";
import { Button } from "../parts/Button.tsx";
import { EmptyState, Skeleton } from "../parts/States.tsx";
import { Toasts } from "../parts/toast.tsx";
import { VIEWS, viewOf } from "../views/index.ts";
import { AsksDialog } from "./AsksDialog.tsx";
import { Boundary } from "./Boundary.tsx";
import { CommandBar } from "./CommandBar.tsx";
import { Header } from "./Header.tsx";
import { Help } from "./Help.tsx";
import { Nav } from "./Nav.tsx";
import { RunLine } from "./RunLine.tsx";
import { QuestionDialog } from "./QuestionDialog.tsx";
import { RunActions } from "./runActions.ts";
import { StopDialog } from "./StopDialog.tsx";
import { useKeys } from "./actions.ts";
import { useNotice } from "./notice.ts";
import { usePageActions } from "./pageActions.ts";
import { addressOf, useRoute } from "./route.ts";

/** What an address without a view shows. */
const FIRST = VIEWS.find((view) => view.id === "run") ?? VIEWS[0];

export function Shell() {
  const t = useT();
  const route = useRoute();
  const known = route.view === "" ? FIRST : viewOf(route.view);
  const view = known ?? FIRST;
  useKeys();
  usePageActions();
  useNotice();
  if (!view) return null;
  const { Component } = view;
  return (
    <>
      <a
        className="skip"
        href="#main"
        onClick={(event) => {
          event.preventDefault();
          document.getElementById("main")?.focus();
        }}
      >
        {t("skip")}
      </a>
      <div className="shell" data-rail={view.wide ? true : undefined}>
        <Header />
        <Nav view={view} />
        <main id="main" tabIndex={-1} data-view={view.id}>
          {known ? (
            <Boundary key={view.id}>
              {view.ofRun && !view.hasWaitingLine && <RunLine />}
              <div className="view">
                <Suspense fallback={<Skeleton />}>
                  <Component />
                </Suspense>
              </div>
            </Boundary>
          ) : (
            <EmptyState title={t("view.unknown")}>
              <a href={addressOf({ view: "runs", run: null })}>{t("go.view", { view: t("view.runs") })}</a>
            </EmptyState>
          )}
        </main>
      </div>
      <RunActions />
      <CommandBar />
      <Help />
      <StopDialog />
      <AsksDialog />
      <QuestionDialog />
      <Lost />
      <Toasts />
    </>
  );
}

/** Floats, so that losing the server moves nothing of what is being read. */
function Lost() {
  const t = useT();
  const link = useLive((live) => live.link);
  if (link.state !== "lost") return null;
  return (
    <div className="lost" role="alert">
      <Plug size={16} strokeWidth={1.5} aria-hidden />
      <div>
        <strong>{t("link.lostWhy", { reason: link.reason })}</strong>
        <p>{t("link.again", { seconds: Math.round(link.retryMs / 1000) })}</p>
      </div>
      <Button onClick={retry}>{t("retry")}</Button>
    </div>
  );
}
