import { ChevronDown, ChevronRight } from "lucide-react";
import { useEffect, useRef } from "react";
import { useT } from "../../i18n/index.ts";
import { chosenOf } from "../../model/review/choice.ts";
import type { FilePatch } from "../../model/review/patch.ts";
import { hasChanged, isSeen } from "../../model/review/seen.ts";
import { Badge } from "../../parts/Badge.tsx";
import { Kbd } from "../../parts/Kbd.tsx";
import { VisibleName } from "../../parts/Visible.tsx";
import type { Reviewed } from "./reviewed.ts";

export function FileHead({ file, index, reviewed }: { file: FilePatch; index: number; reviewed: Reviewed }) {
  const t = useT();
  const isFolded = reviewed.folded.has(file.path);
  const { seen } = reviewed.desk;
  const whole = reviewed.whole(file);
  const Chevron = isFolded ? ChevronRight : ChevronDown;
  return (
    <div className="file-head" data-file={file.path}>
      <button
        type="button"
        className="fold"
        aria-expanded={!isFolded}
        onClick={() => {
          reviewed.fold(file.path, !isFolded);
        }}
      >
        <Chevron size={14} aria-hidden />
        <code className="file-path" dir="ltr">
          {file.from !== undefined && (
            <>
              <VisibleName name={file.from} /> →{" "}
            </>
          )}
          <VisibleName name={file.path} />
        </code>
      </button>
      <span className="delta num">
        {file.binary ? (
          t("review.binary")
        ) : (
          <>
            <span data-tone="ok">+{file.added}</span> <span data-tone="danger">−{file.removed}</span>
          </>
        )}
      </span>
      {file.status !== "modified" && <Badge>{t(`review.file.${file.status}`)}</Badge>}
      {whole && hasChanged(seen, whole) && <Badge tone="warn">{t("review.changedShort")}</Badge>}
      <span className="grow" />
      {reviewed.canChoose && <Take file={file} reviewed={reviewed} />}
      {whole && (
        <label className="tick">
          <input
            type="checkbox"
            checked={isSeen(seen, whole)}
            onChange={(event) => {
              reviewed.markSeen(whole, event.target.checked);
            }}
          />
          <span>{t("review.seen")}</span>
          {index === reviewed.file && <Kbd keys="v" />}
        </label>
      )}
    </div>
  );
}

/** Whether the file lands: all of it, some of its hunks, or nothing. */
function Take({ file, reviewed }: { file: FilePatch; reviewed: Reviewed }) {
  const t = useT();
  const chosen = chosenOf(reviewed.desk.leftOut, file);
  const box = useRef<HTMLInputElement>(null);
  useEffect(() => {
    if (box.current) box.current.indeterminate = chosen === "some";
  }, [chosen]);
  return (
    <label className="tick" title={t("review.takeTitle")}>
      <input
        ref={box}
        type="checkbox"
        checked={chosen !== "none"}
        onChange={(event) => {
          reviewed.takeFile(file, event.target.checked);
        }}
      />
      <span>{t("review.take")}</span>
    </label>
  );
}
