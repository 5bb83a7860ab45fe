import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { address, get, post } from "../../api/client.ts";
import type { CleanUp, Leftover } from "../../api/types.ts";
import { useT } from "../../i18n/index.ts";
import { useRuns } from "../../api/queries.ts";
import { bytes, titleOf } from "../../model/words.ts";
import { Button } from "../../parts/Button.tsx";
import { Dialog } from "../../parts/Dialog.tsx";
import { Skeleton } from "../../parts/States.tsx";
import { complain, toast } from "../../parts/toast.tsx";

interface Props {
  readonly open: boolean;
  readonly onOpenChange: (open: boolean) => void;
}

/** Says what goes, what stays and why, before anything goes (D15). */
export function CleanUpDialog({ open, onOpenChange }: Props) {
  const t = useT();
  const [busy, setBusy] = useState(false);
  const { data, error } = useQuery({
    queryKey: ["clean-up"],
    enabled: open,
    staleTime: 0,
    queryFn: ({ signal }) => get<CleanUp>(address(["clean-up"]), { signal }),
  });

  async function clean(): Promise<void> {
    setBusy(true);
    try {
      const done = await post<CleanUp>(address(["clean-up"]));
      toast(t("clean.done", { size: bytes(done.frees) }));
      onOpenChange(false);
    } catch (problem) {
      complain(problem);
    } finally {
      setBusy(false);
    }
  }

  return (
    <Dialog
      open={open}
      onOpenChange={onOpenChange}
      title={t("clean.title")}
      lead={t("clean.lead")}
      foot={
        <>
          <Button onClick={() => { onOpenChange(false); }}>{t("cancel")}</Button>
          <Button look="danger" busy={busy} blocked={data && data.frees > 0 ? undefined : t("clean.nothing")} onClick={() => void clean()}>
            {data?.frees ? t("clean.do", { size: bytes(data.frees) }) : t("clean.open")}
          </Button>
        </>
      }
    >
      {error && <p className="field-error">{error.message}</p>}
      {!data && !error && <Skeleton rows={2} height={20} />}
      {data?.frees === 0 && <p>{t("clean.nothing")}</p>}
      {data && (
        <>
          <Runs title={t("clean.going")} runs={data.going} />
          {data.images ? <p className="subtle">{t("clean.images", { size: bytes(data.images) })}</p> : null}
          <Runs title={t("clean.staying")} runs={data.staying} />
        </>
      )}
    </Dialog>
  );
}

function Runs({ title, runs }: { title: string; runs: readonly Leftover[] }) {
  const known = new Map(useRuns().data?.runs.map(({ runId, request }) => [runId, request]));
  if (runs.length === 0) return null;
  return (
    <section>
      <h3>{title}</h3>
      <ul className="leftovers">
        {runs.map(({ runId, bytes: size, reason }) => (
          <li key={runId}>
            <span className="ellipsis" title={runId}>{titleOf(known.get(runId) ?? "", runId)}</span>
            <span className="subtle num">{bytes(size)}</span>
            {reason && <p className="subtle">{reason}</p>}
          </li>
        ))}
      </ul>
    </section>
  );
}
