// The words of the page in one of its languages. `t("stop.title")` is checked by the compiler, and
// so are the names in braces: a key that is not in en.ts, or a value that is missing, does not
// compile. Where a text has two forms, `one|other`, the value of `count` chooses.

import { useMemo } from "react";
import { usePrefs } from "../shell/prefs.ts";
import { type Translate, speaker } from "./say.ts";

export type { Catalogue, Key, PlainKey, Translate } from "./say.ts";

/** For code outside of components; a component that should change with the language calls useT. */
export const t: Translate = (key, ...values) => speaker(usePrefs.getState().language)(key, ...values);

export function useT(): Translate {
  const language = usePrefs((prefs) => prefs.language);
  return useMemo(() => speaker(language), [language]);
}
