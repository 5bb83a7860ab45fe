import { memo } from "react";
import { Brain, ChevronRight, Terminal } from "lucide-react";
import { useT } from "../../i18n/index.ts";
import { plain } from "../../model/plain.ts";
import type { Block } from "../../model/transcript.ts";
import { clockTime, fenced } from "../../model/words.ts";
import { Badge } from "../../parts/Badge.tsx";
import { Words } from "../../parts/Words.tsx";

/** One thing an agent said or did; all of it is plain text, whatever it holds. */
export const BlockOf = memo(function BlockOf({ block }: { block: Block }) {
  const t = useT();
  const time = <time dateTime={new Date(block.ts).toISOString()}>{clockTime(block.ts)}</time>;
  switch (block.kind) {
    case "text":
      return (
        <div className="said">
          <div className="said-text">
            {fenced(plain(block.text).trim()).map(({ isCode, text }, index) =>
              isCode ? (
                <pre key={index}>{text}</pre>
              ) : (
                <p key={index}>
                  <Words text={text} />
                </p>
              ),
            )}
          </div>
          {time}
        </div>
      );
    case "thinking":
      return (
        <details className="folded">
          <summary>
            <Brain size={14} strokeWidth={1.5} aria-hidden /> {t("transcript.thinking")} {time}
          </summary>
          <pre>{plain(block.text)}</pre>
        </details>
      );
    case "raw":
      return <pre className="raw">{plain(block.text)}</pre>;
    case "tool":
      return (
        <details className="folded" data-tone={block.failed ? "danger" : "muted"}>
          <summary>
            <Terminal size={14} strokeWidth={1.5} aria-hidden />
            <strong>{plain(block.name) || t("transcript.result")}</strong>
            <code className="ellipsis">{plain(block.gist)}</code>
            {block.exitCode !== null ? (
              <Badge tone={block.failed ? "danger" : "ok"}>{t("transcript.exit", { code: String(block.exitCode) })}</Badge>
            ) : (
              block.failed && <Badge tone="danger">{t("status.failed")}</Badge>
            )}
            {time}
          </summary>
          {block.input && <pre aria-label={t("transcript.input")}>{plain(block.input)}</pre>}
          {block.output !== null && <pre aria-label={t("transcript.result")}>{plain(block.output) || "∅"}</pre>}
        </details>
      );
    case "note":
      return (
        <p className="said-note" data-tone={block.tone}>
          <ChevronRight size={12} aria-hidden /> <span>{plain(block.text)}</span> {time}
        </p>
      );
  }
});
