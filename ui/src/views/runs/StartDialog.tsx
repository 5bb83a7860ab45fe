import { useQuery } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { address, get, post } from "../../api/client.ts";
import type { Bounded, FlowsView, PlannedRun } from "../../api/types.ts";
import { useT } from "../../i18n/index.ts";
import { Button } from "../../parts/Button.tsx";
import { Dialog } from "../../parts/Dialog.tsx";
import { complain } from "../../parts/toast.tsx";
import { go } from "../../shell/route.ts";
import { Images, useImages } from "./Images.tsx";
import { begin } from "./order.ts";

interface Props {
  readonly open: boolean;
  readonly onOpenChange: (open: boolean) => void;
}

/** A flow and a request, the most it can need, and then it begins. */
export function StartDialog({ open, onOpenChange }: Props) {
  const t = useT();
  return (
    <Dialog open={open} onOpenChange={onOpenChange} title={t("start.title")} lead={t("start.lead")} wide>
      {open && <Start onDone={() => { onOpenChange(false); }} />}
    </Dialog>
  );
}

const SETTLED_MS = 350;

function Start({ onDone }: { onDone: () => void }) {
  const t = useT();
  const { data, error } = useQuery({ queryKey: ["flows"], staleTime: 0, queryFn: ({ signal }) => get<FlowsView>(address(["flows"]), { signal }) });
  const [flow, setFlow] = useState<string | null>(null);
  const [request, setRequest] = useState("");
  const [command, setCommand] = useState<string | null>(null);
  const [withPlan, setWithPlan] = useState(true);
  const [busy, setBusy] = useState(false);
  const limits = data && { most: data.mostImages, largest: data.largestImage };
  const images = useImages(limits);
  const chosen = flow ?? data?.flows.find(({ problem }) => !problem)?.name ?? "";
  const known = data?.flows.find(({ name }) => name === chosen);
  const worker = command ?? data?.command ?? "";
  const isMeant = request.trim() !== "" || Boolean(known?.request);
  const isWhole = isMeant && (chosen !== "" || worker.trim() !== "");
  const wish = useSettled(isWhole ? JSON.stringify({ flow: chosen, request: request.trim(), command: chosen ? "" : worker.trim() }) : "");
  const plan = useQuery({
    queryKey: ["plan", wish],
    enabled: data !== undefined && isWhole && wish !== "",
    queryFn: () => post<PlannedRun>(address(["plans"]), JSON.parse(wish)),
  });

  async function start(): Promise<void> {
    setBusy(true);
    try {
      // Planned anew, so that what was typed last is what begins.
      const { order } = await post<PlannedRun>(address(["plans"]), { flow: chosen, request: request.trim(), command: chosen ? "" : worker.trim() });
      const pictures = images.kept.map(({ ref }) => ref);
      const runId = await begin({ ...order, images: pictures, approvePlan: order.approvePlan === true && withPlan });
      onDone();
      go({ view: "run", run: runId });
    } catch (problem) {
      complain(problem);
    } finally {
      setBusy(false);
    }
  }

  const blocked = !isMeant ? t("start.needsRequest") : !chosen && !worker.trim() ? t("start.needsCommand") : images.isComing ? t("start.imagesComing") : limits && images.kept.length > limits.most ? t("start.tooManyImages", { most: limits.most }) : undefined;
  return (
    <form
      className="start"
      onSubmit={(event) => {
        event.preventDefault();
        if (!blocked && !busy) void start();
      }}
    >
      {error && <p className="field-error">{error.message}</p>}
      <label className="field">
        {t("start.flow")}
        <select className="input" value={chosen} onChange={(event) => { setFlow(event.target.value); }}>
          {data?.flows.map(({ name, problem }) => (
            <option key={name} value={name} disabled={Boolean(problem)}>
              {name}
              {problem ? ` (${problem})` : ""}
            </option>
          ))}
          <option value="">{t("start.noFlow")}</option>
        </select>
      </label>
      <label className="field">
        {t("start.request")}
        <textarea
          className="input"
          rows={3}
          autoFocus
          placeholder={known?.request ?? ""}
          value={request}
          onChange={(event) => { setRequest(event.target.value); }}
          onKeyDown={(event) => {
            if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) event.currentTarget.form?.requestSubmit();
          }}
          onPaste={(event) => {
            const files = [...event.clipboardData.files];
            if (files.length === 0) return;
            event.preventDefault();
            void images.add(files);
          }}
        />
      </label>
      <Images images={images} />
      {chosen === "" && (
        <label className="field">
          {t("start.command")}
          <input className="input" value={worker} placeholder="my-agent --flag {prompt}" onChange={(event) => { setCommand(event.target.value); }} />
        </label>
      )}
      {chosen !== "" && (
        <label className="check">
          <input type="checkbox" checked={withPlan} onChange={(event) => { setWithPlan(event.target.checked); }} />
          {t("start.seePlan")}
        </label>
      )}
      {plan.error && <p className="field-error">{plan.error.message}</p>}
      {plan.data && <Bounds planned={plan.data} />}
      <div className="row">
        <span className="grow" />
        <Button onClick={onDone}>{t("cancel")}</Button>
        <Button type="submit" look="primary" busy={busy} blocked={blocked}>
          {t("start.do")}
        </Button>
      </div>
    </form>
  );
}

/** The worst case, so that nobody is surprised by it (D19). */
function Bounds({ planned: { bounds, onTop = [], unbounded = [] } }: { planned: PlannedRun }) {
  const t = useT();
  return (
    <div className="table-scroll" tabIndex={0} role="group" aria-label={t("start.bounds")}>
      <table className="table">
        <caption>{t("start.bounds")}</caption>
        <thead>
          <tr>
            <th>{t("start.part")}</th>
            <th className="number">{t("run.turns")}</th>
            <th className="number">{t("start.messages")}</th>
            <th className="number">{t("start.minutes")}</th>
            <th className="number">{t("run.tokens")}</th>
          </tr>
        </thead>
        <tbody>
          {bounds.map((bound) => (
            <BoundRow key={bound.name} bound={bound} />
          ))}
        </tbody>
      </table>
      {[...onTop, ...unbounded].map((sentence) => (
        <p key={sentence} className="subtle">
          {sentence}
        </p>
      ))}
    </div>
  );
}

function BoundRow({ bound: { name, turns, messages, minutes, tokens } }: { bound: Bounded }) {
  return (
    <tr>
      <th scope="row">{name}</th>
      <td className="number">{turns ?? "∞"}</td>
      <td className="number">{messages ?? "∞"}</td>
      <td className="number">{minutes ?? "∞"}</td>
      <td className="number">{tokens}</td>
    </tr>
  );
}

/** A value once it has not changed for a moment. */
function useSettled(value: string): string {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => { setSettled(value); }, SETTLED_MS);
    return () => { clearTimeout(timer); };
  }, [value]);
  return settled;
}
