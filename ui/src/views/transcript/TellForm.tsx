import { type Ref, useState } from "react";
import { address, post } from "../../api/client.ts";
import type { Member } from "../../api/types.ts";
import { useT } from "../../i18n/index.ts";
import type { RunView } from "../../model/run.ts";
import { Button } from "../../parts/Button.tsx";
import { complain, toast } from "../../parts/toast.tsx";
import { go } from "../../shell/route.ts";
import { followUp } from "../runs/order.ts";

interface Props {
  readonly runId: string;
  readonly member: Member;
  readonly run: RunView;
  readonly isOver: boolean;
  readonly isWorking: boolean;
  readonly ref: Ref<HTMLInputElement>;
}

/** Words for a worker: with its next turn while the run goes on, as a new run when it is over. */
export function TellForm({ runId, member, isOver, isWorking, ref }: Props) {
  const t = useT();
  const [text, setText] = useState("");
  const [busy, setBusy] = useState(false);

  async function send(): Promise<void> {
    setBusy(true);
    try {
      if (isOver) {
        const next = await followUp(runId, text.trim());
        go({ view: "run", run: next });
      } else {
        await post(address(["runs", runId, "tell"]), { agent: member.id, text: text.trim() });
        toast(t("tell.sent", { name: member.name }));
      }
      setText("");
    } catch (error) {
      complain(error);
    } finally {
      setBusy(false);
    }
  }

  return (
    <form
      className="tell"
      onSubmit={(event) => {
        event.preventDefault();
        if (text.trim() && !busy) void send();
      }}
    >
      <label className="field grow">
        <span>
          {t(isOver ? "tell.over" : isWorking ? "tell.working" : "tell.idle", { name: member.name })}
        </span>
        <input
          ref={ref}
          className="input"
          value={text}
          maxLength={20_000}
          onChange={(event) => { setText(event.target.value); }}
          onKeyDown={(event) => { if (event.key === "Escape") event.currentTarget.blur(); }}
        />
      </label>
      <Button type="submit" look="primary" busy={busy} blocked={text.trim() ? undefined : t("tell.empty")}>
        {t(isOver ? "tell.begin" : "inbox.send")}
      </Button>
    </form>
  );
}
