import { useAsks, useRuns } from "../api/queries.ts";
import { useLive } from "../api/feeds.ts";
import { useT } from "../i18n/index.ts";
import { isOver } from "../model/run.ts";
import { titleOf } from "../model/words.ts";
import { statusTone } from "../parts/Pill.tsx";
import { VIEWS, type View } from "../views/index.ts";
import { useCurrentRun } from "./current.ts";
import { addressOf } from "./route.ts";

const RECENT = 5;

export function Nav({ view }: { view: View }) {
  const t = useT();
  const counts = useCounts();
  const current = useCurrentRun();
  const { data } = useRuns();
  return (
    <nav className="nav" aria-label={t("nav.views")}>
      {VIEWS.map(({ id, title, icon: Icon, ofRun, counts: what }) => {
        const count = what ? counts[what] : 0;
        return (
          <a
            key={id}
            href={addressOf({ view: id, ...(!ofRun && { run: null }) })}
            aria-current={id === view.id ? "page" : undefined}
            aria-label={count > 0 ? `${t(title)}, ${count}` : t(title)}
            title={t(title)}
          >
            <Icon size={16} strokeWidth={1.5} aria-hidden />
            <span className="nav-title">{t(title)}</span>
            {count > 0 && (
              <span className="nav-count" data-need={what !== "runs" || undefined}>
                {count}
              </span>
            )}
          </a>
        );
      })}
      {data && data.runs.length > 0 && (
        <section className="nav-recent" aria-labelledby="recent">
          <h2 id="recent">{t("nav.recent")}</h2>
          {data.runs.slice(0, RECENT).map((run) => (
            <a
              key={run.runId}
              href={addressOf({ view: "run", run: run.runId })}
              aria-current={run.runId === current ? "true" : undefined}
              title={run.request}
            >
              <span className="dot" data-tone={statusTone(run.status)} />
              <span className="nav-title">{titleOf(run.request, run.runId)}</span>
            </a>
          ))}
        </section>
      )}
      <Connection />
    </nav>
  );
}

export function useCounts(): Readonly<Record<"runs" | "reviews" | "asks", number>> {
  const asks = useAsks().data?.asks ?? [];
  const runs = useRuns().data?.runs ?? [];
  return {
    asks: asks.length,
    reviews: asks.filter((ask) => ask.scope.startsWith("review:")).length,
    runs: runs.filter((run) => !isOver(run.status)).length,
  };
}

function Connection() {
  const t = useT();
  const link = useLive((live) => live.link);
  const tone = { connecting: "muted", live: "ok", paused: "muted", lost: "danger" }[link.state];
  const denied = link.state === "lost" && link.denied;
  return (
    <p className="connection" data-state={link.state} role="status">
      <span className="dot" data-tone={tone} />
      <span className="nav-title">{t(denied ? "link.denied" : `link.${link.state}`)}</span>
    </p>
  );
}
