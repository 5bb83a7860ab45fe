import { useState } from "react";
import { address, post } from "../api/client.ts";
import type { StoppedView, UndoneView } from "../api/types.ts";
import { type Translate, useT } from "../i18n/index.ts";
import { Button } from "../parts/Button.tsx";
import { Dialog } from "../parts/Dialog.tsx";
import { complain, toast } from "../parts/toast.tsx";
import { type Question, useShell } from "./state.ts";

/** Asks once more before something is taken back or ended. */
export function QuestionDialog() {
  const t = useT();
  const question = useShell((shell) => shell.question);
  const { close } = useShell.getState();
  const [busy, setBusy] = useState(false);
  if (question === null) return null;
  const words = wordsOf(question, t);

  async function yes(asked: Question): Promise<void> {
    setBusy(true);
    try {
      await done(asked, t);
      close();
    } catch (error) {
      complain(error);
    } finally {
      setBusy(false);
    }
  }

  return (
    <Dialog
      open
      onOpenChange={(isOpen) => {
        if (!isOpen) close();
      }}
      title={words.title}
      lead={words.lead}
      foot={
        <>
          <Button onClick={close}>{t("cancel")}</Button>
          <Button look="danger" busy={busy} autoFocus onClick={() => void yes(question)}>
            {words.yes}
          </Button>
        </>
      }
    />
  );
}

function wordsOf(question: Question, t: Translate): { title: string; lead: string; yes: string } {
  if (question.type === "undo") {
    const task = question.taskId ?? t("undo.all");
    return { title: t("undo.title", { task }), lead: t("undo.lead"), yes: t("undo.do") };
  }
  return { title: t("stopWork.title", { name: question.name }), lead: t("stopWork.lead"), yes: t("stopWork.do") };
}

async function done(question: Question, t: Translate): Promise<void> {
  if (question.type === "undo") {
    const { runId, taskId } = question;
    const { undone } = await post<UndoneView>(address(["runs", runId, "undo"]), taskId === null ? {} : { taskId });
    for (const { taskId: task, problem } of undone) {
      if (problem) toast(problem, { tone: "danger" });
      else toast(t("undo.done", { task }));
    }
    return;
  }
  const { runId, agent, taskId } = question;
  const { turns } = await post<StoppedView>(address(["runs", runId, "stop-work"]), {
    ...(agent !== undefined && { agent }),
    ...(taskId !== undefined && { taskId }),
  });
  toast(turns.length ? t("stopWork.done") : t("stop.notRunning"), { tone: turns.length ? "ok" : "warn" });
}
