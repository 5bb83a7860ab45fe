import { memo } from "react";
import type { Details, Item } from "../../model/items.ts";
import { ANSWER } from "../../model/run.ts";
import { clockTime } from "../../model/words.ts";
import { Icon } from "../../parts/Icon.tsx";
import { Words } from "../../parts/Words.tsx";

interface Props {
  readonly item: Item;
  /** Whether the question it asks is still to be answered. */
  readonly open: boolean;
}

// Items never change once they are there, so they are seldom drawn again.
export const TimelineItem = memo(function TimelineItem({ item, open }: Props) {
  if (item.kind === "line") {
    return (
      <li className="line" data-event={item.event} data-tone={item.tone} data-seq={item.seq}>
        <Icon name={item.icon} />
        <div className="line-text">
          <span className="clamp">
            <Words text={item.text} />
          </span>
          {item.details && <More details={item.details} />}
        </div>
        <Time ms={item.ts} />
      </li>
    );
  }
  return (
    <li data-seq={item.seq}>
      <article
        className="collab-card"
        data-event={item.event}
        data-decision={item.decision}
        data-tone={item.tone}
        data-open={open || undefined}
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
          {item.task !== undefined && <span className="badge">{item.task}</span>}
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
        {item.ask !== undefined && <Answer open={open} />}
        {item.details && <More details={item.details} />}
      </article>
    </li>
  );
});

/** One line before and after, so that an answer moves nothing. */
function Answer({ open }: { open: boolean }) {
  if (!open) return <p className="answer">No answer is needed any more.</p>;
  return (
    <p className="answer">
      Answer in a terminal: <code>{ANSWER}</code>
    </p>
  );
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
