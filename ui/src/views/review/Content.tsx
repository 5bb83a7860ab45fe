import { useState } from "react";
import { useT } from "../../i18n/index.ts";
import { isPicture } from "../../model/review/language.ts";
import type { FilePatch } from "../../model/review/patch.ts";
import { Button } from "../../parts/Button.tsx";
import { fileAddress } from "./data.ts";
import type { Reviewed } from "./reviewed.ts";

interface Props {
  readonly file: FilePatch;
  readonly why: "binary" | "same" | "empty" | "large";
  readonly reviewed: Reviewed;
}

/** What stands where there are no lines to draw. */
export function Content({ file, why, reviewed }: Props) {
  const t = useT();
  if (why === "same" || why === "empty") return <p className="content-note">{t(why === "same" ? "review.onlyName" : "review.noLines")}</p>;
  if (why === "large") {
    return (
      <p className="content-note">
        {t("review.large", { count: file.added + file.removed })}{" "}
        <Button
          small
          onClick={() => {
            reviewed.open(file.path);
          }}
        >
          {t("review.showAll")}
        </Button>
      </p>
    );
  }
  return (
    <div className="content-sides">
      {file.status !== "added" && <Side file={file} side="before" reviewed={reviewed} />}
      {file.status !== "deleted" && <Side file={file} side="after" reviewed={reviewed} />}
    </div>
  );
}

function Side({ file, side, reviewed }: { file: FilePatch; side: "before" | "after"; reviewed: Reviewed }) {
  const t = useT();
  const [size, setSize] = useState("");
  const [isBroken, setBroken] = useState(false);
  const path = side === "before" ? (file.from ?? file.path) : file.path;
  const at = fileAddress(reviewed.which, path, side, reviewed.attempt);
  const label = t(side === "before" ? "review.before" : "review.after");
  const name = path.slice(path.lastIndexOf("/") + 1);
  return (
    <figure className="content-side" data-side={side}>
      <figcaption>
        {label} {size && <span className="subtle num">{size}</span>}
      </figcaption>
      {isPicture(path) && !isBroken ? (
        <img
          src={at}
          alt={t("review.picture", { when: label })}
          loading="lazy"
          onLoad={({ currentTarget: { naturalWidth, naturalHeight } }) => {
            setSize(`${naturalWidth} × ${naturalHeight}`);
          }}
          onError={() => {
            setBroken(true);
          }}
        />
      ) : (
        <p className="subtle">{t("review.notText")}</p>
      )}
      <a href={at} download={name}>
        {t("review.download")}
      </a>
    </figure>
  );
}
