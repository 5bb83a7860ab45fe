import { codeRuns } from "../model/words.ts";
import { Visible } from "./Visible.tsx";

/** Plain text in which `…` is set as code and nothing is unseen; never markup. */
export function Words({ text }: { text: string }) {
  return codeRuns(text).map((run, index) =>
    run.code ? (
      <code key={index} dir="ltr">
        <Visible text={run.text} />
      </code>
    ) : (
      <Visible key={index} text={run.text} />
    ),
  );
}
