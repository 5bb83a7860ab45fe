// What a person has chosen for this browser: language, theme, notifications. Kept in localStorage,
// which may be full, forbidden or of a later version: then the choice lasts as long as the page.

import { create } from "zustand";
import type { Language } from "../i18n/say.ts";

export type { Language } from "../i18n/say.ts";
export type Theme = "system" | "light" | "dark" | "contrast";

export const LANGUAGES: Readonly<Record<Language, string>> = { en: "English", ko: "한국어", zh: "中文" };
export const THEMES: readonly Theme[] = ["system", "light", "dark", "contrast"];

interface Kept {
  readonly language: Language;
  readonly theme: Theme;
  readonly notify: boolean;
}

interface Prefs extends Kept {
  readonly choose: (chosen: Partial<Kept>) => void;
}

const PLACE = "agentcanvas.prefs";

export const usePrefs = create<Prefs>((set, get) => ({
  ...start(),
  choose: (chosen) => {
    set(chosen);
    const { language, theme, notify } = get();
    try {
      localStorage.setItem(PLACE, JSON.stringify({ language, theme, notify }));
    } catch {
      // Nothing to keep it in; it holds until the page is left.
    }
    dress();
  },
}));

function start(): Kept {
  const kept = read();
  return {
    language: kept.language && kept.language in LANGUAGES ? kept.language : spoken(),
    theme: kept.theme && THEMES.includes(kept.theme) ? kept.theme : "system",
    notify: kept.notify === true,
  };
}

function read(): Partial<Kept> {
  try {
    const kept: unknown = JSON.parse(localStorage.getItem(PLACE) ?? "{}");
    return typeof kept === "object" && kept !== null ? kept : {};
  } catch {
    return {};
  }
}

/** The first of the browser's languages that the page speaks. */
function spoken(): Language {
  const known = Object.keys(LANGUAGES) as Language[];
  for (const wanted of navigator.languages) {
    const found = known.find((language) => wanted.toLowerCase().split("-")[0] === language);
    if (found) return found;
  }
  return "en";
}

/** Put theme and language on the page. */
export function dress(): void {
  const { theme, language } = usePrefs.getState();
  const root = document.documentElement;
  root.lang = language;
  if (theme === "system") delete root.dataset.theme;
  else root.dataset.theme = theme;
}
