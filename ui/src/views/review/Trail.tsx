import { useMemo, useState } from "react";
import { useT } from "../../i18n/index.ts";
import { plain, plainName } from "../../model/odd.ts";
import { type Mark, trailOf } from "../../model/review/trail.ts";
import { type Names, clockTime, nameOf, titleOf } from "../../model/words.ts";
import { Button } from "../../parts/Button.tsx";
import { ErrorState, Skeleton } from "../../parts/States.tsx";
import { addressOf } from "../../shell/route.ts";
import { usePatch, useTrail } from "./data.ts";
import { Words } from "../../parts/Words.tsx";
import type { Reviewed } from "./reviewed.ts";

interface Props {
  readonly reviewed: Reviewed;
  readonly names: Names;
}

/** From the task to the verdict, for the file that is looked at. */
export function Trail({ reviewed, names }: Props) {
  const t = useT();
  const [wanted, want] = useState(false);
  if (!wanted) {
    return (
      <Button
        small
        onClick={() => {
          want(true);
        }}
      >
        {t("review.showTrail")}
      </Button>
    );
  }
  return (
    <div ref={takeFocus} tabIndex={-1}>
      <Marks reviewed={reviewed} names={names} />
    </div>
  );
}

/** The button that asked for it is gone. */
const takeFocus = (shown: HTMLElement | null): void => {
  shown?.focus({ preventScroll: true });
};

function Marks({ reviewed, names }: Props) {
  const t = useT();
  const { which, files, file } = reviewed;
  const { data, error, refetch } = useTrail(which);
  const marks = useMemo(() => trailOf(data ?? [], which.taskId), [data, which.taskId]);
  const path = files[file]?.path;
  if (error) return <ErrorState title={t("review.noTrail")} error={error} onRetry={() => void refetch()} />;
  if (!data) return <Skeleton rows={3} height={40} />;
  if (marks.length === 0) return <p className="subtle">{t("review.noTrail")}</p>;
  return (
    <>
      {path !== undefined && (
        <p className="hint subtle">
          {t("review.trailOf")} <code dir="ltr">{plainName(path)}</code>
        </p>
      )}
      <ol className="trail">
        {marks.map((mark) => (
          <li key={mark.seq} data-kind={mark.kind}>
            <p className="row">
              <strong data-tone={mark.tone}>{t(`review.trail.${mark.kind}`)}</strong>
              <span className="subtle">{plain(nameOf(names, mark.who))}</span>
              <span className="grow" />
              <time className="subtle num">{clockTime(mark.ts)}</time>
            </p>
            <p className="clamp said">
              <Words text={titleOf(mark.text, "")} />
            </p>
            {mark.kind === "proposal" && path !== undefined && <InFile reviewed={reviewed} attempt={mark.attempt} path={path} />}
            {mark.turnId !== undefined && (
              <a href={addressOf({ view: "transcript", run: which.runId, args: { agent: mark.who, turn: mark.turnId } })}>{t("review.transcript")}</a>
            )}
          </li>
        ))}
      </ol>
    </>
  );
}

/** What an attempt did to the file. */
function InFile({ reviewed, attempt, path }: { reviewed: Reviewed; attempt: Mark["attempt"]; path: string }) {
  const t = useT();
  const isThis = attempt === reviewed.attempt;
  const patch = usePatch(reviewed.which, isThis || attempt > reviewed.attempt ? undefined : attempt);
  const files = isThis ? reviewed.all : patch.data;
  if (!files) return null;
  const file = files.find((one) => one.path === path);
  return (
    <p className="delta num">
      r{attempt}{" "}
      {file ? (
        <>
          <span data-tone="ok">+{file.added}</span> <span data-tone="danger">−{file.removed}</span>
        </>
      ) : (
        <span className="subtle">{t("review.notTouched")}</span>
      )}
    </p>
  );
}
