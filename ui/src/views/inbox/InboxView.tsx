import { Inbox } from "lucide-react";
import { useFeed } from "../../api/feeds.ts";
import { useAsks, useRuns } from "../../api/queries.ts";
import type { PersonAsk } from "../../api/types.ts";
import { useT } from "../../i18n/index.ts";
import { nameOf, titleOf } from "../../model/words.ts";
import { Badge } from "../../parts/Badge.tsx";
import { Icon } from "../../parts/Icon.tsx";
import { EmptyState, ErrorState, Skeleton } from "../../parts/States.tsx";
import { Words } from "../../parts/Words.tsx";
import { addressOf } from "../../shell/route.ts";
import { FormOf } from "./AskForm.tsx";

/** Everything that waits for a person, of every run, the oldest first. */
export default function InboxView() {
  const t = useT();
  const { data, error, refetch } = useAsks();
  if (error) return <ErrorState title={t("inbox.cannot")} error={error} onRetry={() => void refetch()} />;
  if (!data) return <Skeleton />;
  if (data.asks.length === 0) return <EmptyState icon={Inbox} title={t("inbox.none")} text={t("inbox.noneText")} />;
  return (
    <div className="inbox">
      <h2>
        {t("view.inbox")} <span className="subtle">{t("nav.needsYou", { count: data.asks.length })}</span>
      </h2>
      <AskList asks={data.asks} />
    </div>
  );
}

/** Each with the form that answers it. */
export function AskList({ asks }: { asks: readonly PersonAsk[] }) {
  return (
    <ol className="asks">
      {asks.map((ask) => (
        <li key={ask.ask_id}>
          <Ask ask={ask} />
        </li>
      ))}
    </ol>
  );
}

function Ask({ ask }: { ask: PersonAsk }) {
  const t = useT();
  const runs = useRuns().data?.runs;
  const run = runs?.find(({ runId }) => runId === ask.run_id);
  const [about = "", ...rest] = ask.scope.split(":");
  const isKnown = about === "review" || about === "plan";
  const names = useFeed(isKnown ? null : ask.run_id)?.run.names ?? {};
  const title = isKnown ? t(`item.asks.${about}`) : t("item.asks.other", { name: nameOf(names, ask.agent_id) });
  return (
    <article className="collab-card" data-event="person_asked" data-tone="warn" data-open>
      <header>
        <span className="card-icon">
          <Icon name="ask" emoji="❓" />
        </span>
        <h3>{title}</h3>
        {rest.length > 0 && about !== "turn" && <Badge>{rest.join(":")}</Badge>}
        <a className="ellipsis" href={addressOf({ view: "run", run: ask.run_id })}>
          {titleOf(run?.request ?? "", ask.run_id)}
        </a>
      </header>
      <p className="body">
        <Words text={ask.text.trim()} />
      </p>
      <FormOf ask={ask} />
    </article>
  );
}
