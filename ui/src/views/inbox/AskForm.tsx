// What waits for a person, answered where it is shown (D24).

import { useState } from "react";
import { address, post } from "../../api/client.ts";
import { useAsks } from "../../api/queries.ts";
import type { PersonAsk } from "../../api/types.ts";
import { useT } from "../../i18n/index.ts";
import { type Field, contentOf, fieldsOf, missing } from "../../model/form.ts";
import { Button } from "../../parts/Button.tsx";
import { complain } from "../../parts/toast.tsx";
import { addressOf } from "../../shell/route.ts";
import { PlanForm } from "./PlanForm.tsx";

/** The form of an ask by its id; the asks that are open are the server's to say. */
export function AskForm({ askId }: { askId: string }) {
  const { data } = useAsks();
  const ask = data?.asks.find((one) => one.ask_id === askId);
  return ask ? <FormOf ask={ask} /> : null;
}

export function FormOf({ ask }: { ask: PersonAsk }) {
  const answering = useAnswer(ask);
  const [about] = ask.scope.split(":", 1);
  return (
    <div className="ask-form">
      {ask.problem && <p className="field-error">{ask.problem}</p>}
      {about === "review" ? (
        <VerdictForm ask={ask} {...answering} />
      ) : about === "plan" ? (
        <PlanForm ask={ask} {...answering} />
      ) : (
        <AnswerForm ask={ask} {...answering} />
      )}
    </div>
  );
}

export interface Answering {
  readonly busy: boolean;
  readonly answer: (content: unknown) => void;
}

function useAnswer({ ask_id, person }: PersonAsk): Answering {
  const [busy, setBusy] = useState(false);
  return {
    busy,
    answer: (content) => {
      setBusy(true);
      post(address(["asks", ask_id, "answer"]), { content, person })
        .catch(complain)
        .finally(() => {
          setBusy(false);
        });
    },
  };
}

/** A verdict in short; the patch, its evidence and comments on its lines are in the Review view. */
function VerdictForm({ ask, busy, answer }: { ask: PersonAsk } & Answering) {
  const t = useT();
  const [choosing, setChoosing] = useState<"revise" | "reject" | null>(null);
  const [reason, setReason] = useState("");
  const task = ask.scope.slice("review:".length);
  return (
    <>
      <div className="row">
        <a className="button" data-look="primary" href={addressOf({ view: "review", run: ask.run_id, args: { task } })}>
          {t("card.patch")}
        </a>
        <Button look="apply" busy={busy} onClick={() => { answer({ decision: "apply", reason: "" }); }}>
          {t("verdict.apply")}
        </Button>
        <Button look="warn" aria-expanded={choosing === "revise"} onClick={() => { setChoosing("revise"); }}>
          {t("verdict.revise")}
        </Button>
        <Button look="no" aria-expanded={choosing === "reject"} onClick={() => { setChoosing("reject"); }}>
          {t("verdict.reject")}
        </Button>
      </div>
      {choosing && (
        <form
          className="row"
          onSubmit={(event) => {
            event.preventDefault();
            if (reason.trim()) answer({ decision: choosing, reason: reason.trim() });
          }}
        >
          <input
            className="input grow"
            autoFocus
            aria-label={t(`verdict.why.${choosing}`)}
            placeholder={t(`verdict.why.${choosing}`)}
            value={reason}
            onChange={(event) => { setReason(event.target.value); }}
          />
          <Button type="submit" look={choosing === "revise" ? "warn" : "no"} busy={busy} blocked={reason.trim() ? undefined : t("verdict.needsReason")}>
            {t("inbox.send")}
          </Button>
        </form>
      )}
    </>
  );
}

/** Any other question: words, or a form from the schema of its answer. */
function AnswerForm({ ask, busy, answer }: { ask: PersonAsk } & Answering) {
  const t = useT();
  const fields = fieldsOf(ask.schema);
  const [values, setValues] = useState<Readonly<Record<string, string>>>({});
  const lacking = missing(fields, values);
  const only = fields.length === 1 ? fields[0] : undefined;
  if (only?.choices && only.choices.length <= 5) {
    return (
      <div className="row" role="group" aria-label={only.label || t("inbox.answer")}>
        {only.choices.map((choice) => (
          <Button key={choice} busy={busy} onClick={() => { answer(contentOf(fields, { [only.name]: choice })); }}>
            {choice}
          </Button>
        ))}
      </div>
    );
  }
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        if (!lacking) answer(contentOf(fields, values));
      }}
    >
      {ask.instruction && fields.length > 1 && <p className="subtle">{ask.instruction}</p>}
      {fields.map((field) => (
        <label key={field.name} className="field">
          {field.label || t("inbox.answer")}
          <Control field={field} value={values[field.name] ?? ""} change={(value) => { setValues({ ...values, [field.name]: value }); }} />
        </label>
      ))}
      <div className="row">
        <Button type="submit" look="primary" busy={busy} blocked={lacking ? t("inbox.missing", { field: lacking }) : undefined}>
          {t("inbox.send")}
        </Button>
      </div>
    </form>
  );
}

function Control({ field, value, change }: { field: Field; value: string; change: (value: string) => void }) {
  if (field.choices) {
    return (
      <select className="input" value={value} onChange={(event) => { change(event.target.value); }}>
        <option value="" />
        {field.choices.map((choice) => (
          <option key={choice}>{choice}</option>
        ))}
      </select>
    );
  }
  if (field.kind === "number") {
    return <input className="input" inputMode="decimal" value={value} onChange={(event) => { change(event.target.value); }} />;
  }
  return <textarea className="input" rows={field.kind === "json" ? 5 : 2} value={value} onChange={(event) => { change(event.target.value); }} />;
}
