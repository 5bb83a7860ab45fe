import { useState } from "react";
import { address, post } from "../api/client.ts";
import { useT } from "../i18n/index.ts";
import { Button } from "../parts/Button.tsx";
import { Dialog } from "../parts/Dialog.tsx";
import { complain, toast } from "../parts/toast.tsx";
import { useCurrentRun } from "./current.ts";
import { useShell } from "./state.ts";

/** Says what ends and what stays before anything ends. */
export function StopDialog() {
  const t = useT();
  const runId = useCurrentRun();
  const shown = useShell((shell) => shell.shown);
  const { open, close } = useShell.getState();
  const [why, setWhy] = useState("");
  const [busy, setBusy] = useState(false);

  async function stop(): Promise<void> {
    if (runId === null) return;
    setBusy(true);
    try {
      await post(address(["runs", runId, "stop"]), why.trim() ? { reason: why.trim() } : {});
      toast(t("stop.done"));
      setWhy("");
      close();
    } catch (error) {
      complain(error);
    } finally {
      setBusy(false);
    }
  }

  return (
    <Dialog
      open={shown === "stop"}
      onOpenChange={(isOpen) => {
        if (isOpen) open("stop");
        else close();
      }}
      title={t("stop.title")}
      lead={t("stop.lead")}
      foot={
        <>
          <Button onClick={close}>{t("stop.keep")}</Button>
          <Button look="danger" busy={busy} onClick={() => void stop()}>
            {t("stop.run")}
          </Button>
        </>
      }
    >
      <label className="field">
        {t("stop.why")}
        <input
          className="input"
          value={why}
          maxLength={500}
          onChange={(event) => {
            setWhy(event.target.value);
          }}
          onKeyDown={(event) => {
            if (event.key === "Enter" && !event.nativeEvent.isComposing) void stop();
          }}
        />
      </label>
    </Dialog>
  );
}
