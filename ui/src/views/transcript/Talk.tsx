import { useEffect, useMemo, useRef, useState } from "react";
import { address, get } from "../../api/client.ts";
import type { Member, TranscriptView } from "../../api/types.ts";
import { useLive } from "../../api/feeds.ts";
import { useT } from "../../i18n/index.ts";
import { type RunView, isOver } from "../../model/run.ts";
import { type Block, NO_TALK, heard } from "../../model/transcript.ts";
import { dollars, short } from "../../model/words.ts";
import { EmptyState, ErrorState, Skeleton } from "../../parts/States.tsx";
import { type FeedMoves, VirtualFeed } from "../../parts/VirtualFeed.tsx";
import { type Action, useActions } from "../../shell/actions.ts";
import { BlockOf } from "./BlockOf.tsx";
import { TellForm } from "./TellForm.tsx";

const LOOK_AGAIN_MS = 1000;

interface Props {
  readonly runId: string;
  readonly member: Member;
  readonly run: RunView;
  /** The newest event of the run: with each the agent may have said more. */
  readonly seen: number;
}

export function Talk({ runId, member, run, seen }: Props) {
  const t = useT();
  const [talk, setTalk] = useState(NO_TALK);
  const [state, setState] = useState<"loading" | "here" | Error>("loading");
  const [withRaw, setWithRaw] = useState(false);
  const moves = useRef<FeedMoves>(null);
  const telling = useRef<HTMLInputElement>(null);
  const last = useRef(0);
  const isLost = useLive(({ link }) => link.state === "lost");
  const isWorking = run.turns.some((turn) => turn.agent === member.id);

  useEffect(() => {
    const leaving = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    async function look(): Promise<void> {
      try {
        const at = address(["runs", runId, "transcript"], { agent: member.id, after: last.current });
        const { entries } = await get<TranscriptView>(at, { signal: leaving.signal });
        last.current = Math.max(last.current, entries.at(-1)?.seq ?? 0);
        setTalk((before) => heard(before, entries));
        setState("here");
      } catch (error) {
        if (leaving.signal.aborted) return;
        // What is there stays; the page says by itself that the server is gone.
        setState((before) => (before === "here" ? before : error instanceof Error ? error : new Error(String(error))));
      }
      // While it works, it says more than the run tells.
      if (isWorking && !leaving.signal.aborted) timer = setTimeout(() => void look(), LOOK_AGAIN_MS);
    }
    void look();
    return () => {
      leaving.abort();
      clearTimeout(timer);
    };
    // Once the server is back, what could not be had is asked for again.
  }, [runId, member.id, seen, isWorking, isLost]);

  useActions(
    useMemo((): Action[] => {
      const group = t("view.transcript");
      return [
        { id: "transcript.end", title: t("timeline.follow"), group, keys: "f", run: () => moves.current?.toEnd() },
        { id: "transcript.start", title: t("timeline.toStart"), group, keys: "g g", run: () => moves.current?.toStart() },
        { id: "transcript.tell", title: t("tell.open", { name: member.name }), group, keys: "m", run: () => telling.current?.focus() },
        { id: "transcript.raw", title: t("transcript.raw"), group, keys: "w", run: () => { setWithRaw((on) => !on); } },
      ];
    }, [t, member.name]),
  );

  const blocks = withRaw ? talk.blocks : talk.blocks.filter(({ kind }) => kind !== "raw");
  return (
    <section className="timeline talk" aria-label={t("run.transcriptOf", { name: member.name })}>
      <header className="toolbar">
        <h2>{member.name}</h2>
        <span className="subtle">
          {[
            talk.model,
            talk.input + talk.output > 0 && t("transcript.tokens", { input: short(talk.input), output: short(talk.output) }),
            talk.cost > 0 && dollars(talk.cost),
          ]
            .filter(Boolean)
            .join(" · ")}
        </span>
        <span className="grow" />
        <label className="check">
          <input type="checkbox" checked={withRaw} onChange={(event) => { setWithRaw(event.target.checked); }} />
          {t("transcript.raw")}
        </label>
      </header>
      {state instanceof Error ? (
        <ErrorState title={t("transcript.cannot")} error={state} />
      ) : blocks.length > 0 ? (
        <VirtualFeed
          ref={moves}
          rows={blocks}
          keyOf={keyOf}
          sizeOf={sizeOf}
          label={t("run.transcriptOf", { name: member.name })}
          count={blocks.length}
          keys="f"
          draw={(block) => <BlockOf block={block} />}
        />
      ) : state === "loading" ? (
        <Skeleton />
      ) : (
        <EmptyState title={t("transcript.empty", { name: member.name })} text={t("transcript.emptyText")} />
      )}
      <TellForm ref={telling} runId={runId} member={member} run={run} isOver={isOver(run.status)} isWorking={isWorking} />
    </section>
  );
}

const keyOf = (block: Block): string => String(block.seq);
const sizeOf = (block: Block): number => (block.kind === "text" ? 60 : 32);
