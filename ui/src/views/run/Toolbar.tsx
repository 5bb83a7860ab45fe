import type { RefObject } from "react";
import { useState } from "react";
import { useT } from "../../i18n/index.ts";
import { plain } from "../../model/plain.ts";
import type { Filter, Kind } from "../../model/rows.ts";
import type { RunView } from "../../model/run.ts";

export const KINDS: readonly Kind[] = ["all", "proposals", "reviews", "checks", "questions", "problems"];
const SOURCES = [
  "user_input",
  "orchestrator_to_worker",
  "worker_proposal",
  "announce_internal",
  "announce_user",
  "system",
] as const;

interface Props {
  readonly filter: Filter;
  readonly change: (filter: Filter) => void;
  readonly run: RunView;
  readonly searching: RefObject<HTMLInputElement | null>;
  readonly timing: RefObject<HTMLInputElement | null>;
  /** False where there is no such time. */
  readonly jump: (time: string) => boolean;
}

export function Toolbar({ filter, change, run, searching, timing, jump }: Props) {
  const t = useT();
  const [wrong, setWrong] = useState(false);
  return (
    <div className="toolbar" role="toolbar" aria-label={t("timeline.filters")}>
      <div className="segments" role="radiogroup" aria-label={t("timeline.kind")}>
        {KINDS.map((kind) => (
          <label key={kind} className="segment">
            <input
              type="radio"
              name="kind"
              checked={filter.kind === kind}
              onChange={() => {
                change({ ...filter, kind });
              }}
            />
            <span>{t(`timeline.kind.${kind}`)}</span>
          </label>
        ))}
      </div>
      <select
        className="input kinds"
        aria-label={t("timeline.kind")}
        value={filter.kind}
        onChange={(event) => {
          change({ ...filter, kind: event.target.value as Kind });
        }}
      >
        {KINDS.map((kind) => (
          <option key={kind} value={kind}>
            {t(`timeline.kind.${kind}`)}
          </option>
        ))}
      </select>
      <select
        className="input"
        aria-label={t("timeline.agent")}
        value={filter.agent}
        onChange={(event) => {
          change({ ...filter, agent: event.target.value });
        }}
      >
        <option value="">{t("timeline.anyAgent")}</option>
        {run.team.map(({ id, name }) => (
          <option key={id} value={id}>
            {plain(name)}
          </option>
        ))}
      </select>
      <select
        className="input"
        aria-label={t("timeline.source")}
        value={filter.provenance}
        onChange={(event) => {
          change({ ...filter, provenance: event.target.value as Filter["provenance"] });
        }}
      >
        <option value="">{t("timeline.anySource")}</option>
        {SOURCES.map((source) => (
          <option key={source} value={source}>
            {t(`timeline.source.${source}`)}
          </option>
        ))}
      </select>
      <input
        ref={searching}
        className="input search"
        type="search"
        aria-label={t("timeline.search")}
        placeholder={t("timeline.search")}
        value={filter.search}
        onChange={(event) => {
          change({ ...filter, search: event.target.value });
        }}
        onKeyDown={(event) => {
          if (event.key === "Escape") event.currentTarget.blur();
        }}
      />
      <input
        ref={timing}
        className="input time"
        aria-label={t("timeline.time")}
        title={t("timeline.time")}
        placeholder="hh:mm"
        aria-invalid={wrong}
        onKeyDown={(event) => {
          if (event.key === "Enter") setWrong(!jump(event.currentTarget.value));
          if (event.key === "Escape") event.currentTarget.blur();
        }}
      />
      <label className="check">
        <input
          type="checkbox"
          checked={filter.byTask}
          onChange={(event) => {
            change({ ...filter, byTask: event.target.checked });
          }}
        />
        {t("timeline.byTask")}
      </label>
    </div>
  );
}
