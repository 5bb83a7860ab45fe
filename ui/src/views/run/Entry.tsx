import { memo } from "react";
import { useT } from "../../i18n/index.ts";
import type { Card, Details, Item } from "../../model/items.ts";
import { clockTime } from "../../model/words.ts";
import { Badge } from "../../parts/Badge.tsx";
import { Icon } from "../../parts/Icon.tsx";
import { Words } from "../../parts/Words.tsx";
import { addressOf } from "../../shell/route.ts";
import { useShell } from "../../shell/state.ts";
import { AskForm } from "../inbox/AskForm.tsx";

interface Props {
  readonly item: Item;
  readonly runId: string;
  /** Whether the question it asks is still to be answered. */
  readonly open: boolean;
  /** Whether its change is in the workspace now. */
  readonly undoable: boolean;
}

// Items never change once they are there, so they are seldom drawn again.
export const TimelineItem = memo(function TimelineItem({ item, runId, open, undoable }: Props) {
  if (item.kind === "line") {
    return (
      <div className="line" data-event={item.event} data-tone={item.tone} data-seq={item.seq}>
        <Icon name={item.icon} />
        <div className="line-text">
          <span className="clamp">
            <Words text={item.text} />
          </span>
          {item.details && <More details={item.details} />}
        </div>
        <Time ms={item.ts} />
      </div>
    );
  }
  return (
    <article
      className="collab-card"
      data-event={item.event}
      data-decision={item.decision}
      data-tone={item.tone}
      data-open={open || undefined}
      data-seq={item.seq}
    >
      <header>
        <span className="card-icon">
          <Icon name={item.icon} emoji={item.emoji} />
        </span>
        <h3>
          {item.title}
          {item.to !== undefined && (
            <>
              <span className="arrow"> → </span>
              {item.to}
            </>
          )}
        </h3>
        {item.task !== undefined && <Badge>{item.task}</Badge>}
        <Time ms={item.ts} />
      </header>
      {item.facts.length > 0 && (
        <p className="facts">
          {item.facts.map((fact) => (
            <span key={fact.text} data-tone={fact.tone}>
              {fact.text}
            </span>
          ))}
        </p>
      )}
      {item.body && (
        <p className="body">
          <Words text={item.body} />
        </p>
      )}
      {item.ask !== undefined && <Answer askId={item.ask} open={open} />}
      <Links item={item} runId={runId} undoable={undoable} />
      {item.details && <More details={item.details} />}
    </article>
  );
});

/** From a card to what it is about. */
function Links({ item, runId, undoable }: { item: Card; runId: string; undoable: boolean }) {
  const t = useT();
  const { task, event, actor, decision } = item;
  if (task === undefined) return null;
  if (event === "proposal_submitted" || event === "checks_run") {
    return (
      <p className="card-links">
        <a href={addressOf({ view: "review", run: runId, args: { task } })}>{t("card.patch")}</a>
        {event === "proposal_submitted" && (
          <a href={addressOf({ view: "transcript", run: runId, args: { agent: actor } })}>{t("card.details")}</a>
        )}
      </p>
    );
  }
  if (event === "proposal_reviewed") {
    return (
      <p className="card-links">
        <a href={addressOf({ view: "review", run: runId, args: { task } })}>{t("card.patch")}</a>
        {decision === "apply" && undoable && (
          <button
            type="button"
            className="link"
            onClick={() => {
              useShell.getState().ask({ type: "undo", runId, taskId: task });
            }}
          >
            {t("card.undo")}
          </button>
        )}
      </p>
    );
  }
  return null;
}

function Answer({ askId, open }: { askId: string; open: boolean }) {
  const t = useT();
  if (!open) return <p className="answer">{t("card.answered")}</p>;
  return <AskForm askId={askId} />;
}

function More({ details }: { details: Details }) {
  return (
    <details>
      <summary>{details.label}</summary>
      {details.text !== undefined && <pre>{details.text}</pre>}
      {details.files && (
        <ul className="files">
          {details.files.map((file) => (
            <li key={file}>
              <code>{file}</code>
            </li>
          ))}
        </ul>
      )}
    </details>
  );
}

function Time({ ms }: { ms: number }) {
  return <time dateTime={new Date(ms).toISOString()}>{clockTime(ms)}</time>;
}
