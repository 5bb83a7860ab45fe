import { useEffect, useRef, useState } from "react";
import { useT } from "../../i18n/index.ts";
import { LONGEST_COMMENT, keyOf } from "../../model/review/comments.ts";
import { type Place, placeKey } from "../../model/review/rows.ts";
import { Badge } from "../../parts/Badge.tsx";
import { Button } from "../../parts/Button.tsx";
import { Severity } from "./Severity.tsx";
import { Words } from "../../parts/Words.tsx";
import type { Reviewed } from "./reviewed.ts";

const ROOM_MS = 50;

/** What is said about a line: findings of reviewers, and the person's own comments. */
export function Thread({ place, reviewed }: { place: Place; reviewed: Reviewed }) {
  const t = useT();
  const here = placeKey(place);
  const findings = reviewed.findings.filter((finding) => finding.key === here);
  const comments = reviewed.comments.filter((comment) => keyOf(comment) === here);
  const { writing } = reviewed;
  const isWriting = writing !== null && placeKey(writing.place) === here;
  return (
    <div className="thread">
      {findings.map(({ finding, by }, index) => (
        <div key={`f${index}`} className="thread-item">
          <p className="row">
            <strong>{by}</strong> <Severity severity={finding.severity} />
            <span className="subtle">{t("review.lineNumber", { line: place.line })}</span>
          </p>
          <p className="said">
            <Words text={finding.description ?? ""} />
          </p>
        </div>
      ))}
      {comments.map((comment) =>
        writing?.id === comment.id ? null : (
          <div key={comment.id} className="thread-item" data-own>
            <p className="row">
              <strong>{t("you")}</strong> <Badge tone="accent">{t("review.draft")}</Badge>
              <span className="subtle">{t("review.lineNumber", { line: place.line })}</span>
              <span className="grow" />
              {reviewed.canSay && (
                <>
                  <Button
                    small
                    look="ghost"
                    onClick={() => {
                      reviewed.write({ place, quote: comment.quote, id: comment.id });
                    }}
                  >
                    {t("review.edit")}
                  </Button>
                  <Button
                    small
                    look="ghost"
                    onClick={() => {
                      reviewed.comment({ type: "removed", id: comment.id });
                    }}
                  >
                    {t("review.remove")}
                  </Button>
                </>
              )}
            </p>
            <p className="said">
              <Words text={comment.text} />
            </p>
          </div>
        ),
      )}
      {isWriting && <Editor key={writing.id ?? "new"} reviewed={reviewed} />}
    </div>
  );
}

function Editor({ reviewed }: { reviewed: Reviewed }) {
  const t = useT();
  const { writing } = reviewed;
  const before = reviewed.comments.find(({ id }) => id === writing?.id)?.text ?? "";
  const [text, setText] = useState(before);
  const field = useRef<HTMLTextAreaElement>(null);
  useEffect(() => {
    field.current?.focus({ preventScroll: true });
    // Its height is known once it was drawn, and the rows below have made room.
    const timer = setTimeout(() => {
      field.current?.closest(".thread")?.scrollIntoView({ block: "nearest" });
    }, ROOM_MS);
    return () => {
      clearTimeout(timer);
    };
  }, []);
  if (!writing) return null;
  const { place, quote, id } = writing;
  const leave = () => {
    field.current?.closest<HTMLElement>(".diff-scroll")?.focus({ preventScroll: true });
    reviewed.write(null);
  };
  const save = () => {
    reviewed.comment(id === undefined ? { type: "said", place, quote, text } : { type: "changed", id, text });
    leave();
  };
  return (
    <div className="thread-item">
      <textarea
        ref={field}
        className="input"
        value={text}
        maxLength={LONGEST_COMMENT}
        aria-label={t("review.commentOn", { line: place.line })}
        placeholder={t("review.commentHint")}
        onChange={(event) => {
          setText(event.target.value);
        }}
        onKeyDown={(event) => {
          if (event.nativeEvent.isComposing) return;
          if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
            event.preventDefault();
            save();
          } else if (event.key === "Escape") {
            event.preventDefault();
            event.stopPropagation();
            leave();
          }
        }}
      />
      <p className="row thread-foot">
        <span className="subtle">{t("review.commentGoes")}</span>
        <span className="grow" />
        <Button
          small
          keys="Escape"
          look="ghost"
          onClick={leave}
        >
          {t("cancel")}
        </Button>
        <Button small look="primary" keys="Ctrl+Enter" onClick={save}>
          {t("review.addComment")}
        </Button>
      </p>
    </div>
  );
}
