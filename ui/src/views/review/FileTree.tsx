import { Folder, MessageSquare } from "lucide-react";
import { useT } from "../../i18n/index.ts";
import { type LeftOut, chosenOf } from "../../model/review/choice.ts";
import { plainName } from "../../model/odd.ts";
import type { FilePatch } from "../../model/review/patch.ts";
import { type Seen, hasChanged, isSeen } from "../../model/review/seen.ts";
import { treeOf } from "../../model/review/tree.ts";

interface Props {
  readonly files: readonly FilePatch[];
  readonly current: number;
  /** The file as the attempt has it, where only a part of its change is shown. */
  readonly whole: (file: FilePatch) => FilePatch | undefined;
  readonly seen: Seen;
  readonly leftOut: LeftOut;
  /** How much is said about each file, by path. */
  readonly said: ReadonlyMap<string, number>;
  readonly onGo: (file: number) => void;
  readonly onSeen: (file: FilePatch, is: boolean) => void;
}

const LETTERS = { added: "A", deleted: "D", modified: "M", renamed: "R" } as const;

export function FileTree({ files, current, whole, seen, leftOut, said, onGo, onSeen }: Props) {
  const t = useT();
  return (
    <nav className="review-tree" aria-label={t("review.tree")} data-panel="files">
      <ul>
        {treeOf(files).map((branch) => {
          const style = { paddingLeft: 12 + branch.depth * 12 };
          if (branch.kind === "folder") {
            return (
              <li key={`d ${branch.path}`} className="tree-folder" style={style}>
                <Folder size={14} aria-hidden /> <Ends text={plainName(branch.name)} />
              </li>
            );
          }
          const file = files[branch.file];
          if (!file) return null;
          const name = plainName(branch.name);
          const entire = whole(file);
          return (
            <li
              key={`f ${file.path}`}
              className="tree-file"
              style={style}
              data-status={file.status}
              data-seen={entire && isSeen(seen, entire) ? true : undefined}
              data-chosen={chosenOf(leftOut, file)}
              data-current={branch.file === current || undefined}
            >
              <input
                type="checkbox"
                checked={entire !== undefined && isSeen(seen, entire)}
                disabled={!entire}
                aria-label={t("review.seenFile", { file: plainName(file.path) })}
                title={entire && hasChanged(seen, entire) ? t("review.changedFile") : undefined}
                onChange={(event) => {
                  if (entire) onSeen(entire, event.target.checked);
                }}
              />
              <button
                type="button"
                className="tree-name"
                aria-current={branch.file === current ? "true" : undefined}
                title={file.from === undefined ? plainName(file.path) : `${plainName(file.from)} → ${plainName(file.path)}`}
                onClick={() => {
                  onGo(branch.file);
                }}
              >
                <span className="tree-letter" data-status={file.status} title={t(`review.file.${file.status}`)}>
                  {LETTERS[file.status]}
                </span>
                <Ends text={name} />
                {entire && hasChanged(seen, entire) && <span className="tree-new" title={t("review.changedFile")} />}
              </button>
              {(said.get(file.path) ?? 0) > 0 && (
                <span className="badge" title={t("review.said", { count: said.get(file.path) ?? 0 })}>
                  <MessageSquare size={11} aria-hidden /> {said.get(file.path)}
                </span>
              )}
              <span className="delta num">
                {file.binary ? (
                  <span className="subtle">{t("review.binary")}</span>
                ) : (
                  <>
                    {file.added > 0 && <span data-tone="ok">+{file.added}</span>} {file.removed > 0 && <span data-tone="danger">−{file.removed}</span>}
                  </>
                )}
              </span>
            </li>
          );
        })}
      </ul>
    </nav>
  );
}

const TAIL = 12;

/** A name of which the middle goes where there is no room for all of it. */
function Ends({ text }: { text: string }) {
  const letters = text.match(/[^]/gu) ?? [];
  const at = letters.length > 2 * TAIL ? letters.length - TAIL : letters.length;
  return (
    <span className="ends" title={text}>
      <span>{letters.slice(0, at).join("")}</span>
      <span>{letters.slice(at).join("")}</span>
    </span>
  );
}
