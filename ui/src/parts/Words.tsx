import { codeRuns } from "../model/words.ts";

/** Plain text in which `…` is set as code; never markup. */
export function Words({ text }: { text: string }) {
  return codeRuns(text).map((run, index) => (run.code ? <code key={index}>{run.text}</code> : run.text));
}
