// How a text of a catalogue is filled in: pure, so that model/ can be handed it.

import { en } from "./en.ts";
import { ko } from "./ko.ts";
import { zh } from "./zh.ts";

export type Catalogue = typeof en;
export type Key = keyof Catalogue;
export type Language = "en" | "ko" | "zh";

/** The names in braces of a text. */
type Names<Text extends string> = Text extends `${string}{${infer Name}}${infer Rest}` ? Name | Names<Rest> : never;
type Values<K extends Key> = Readonly<Record<Names<Catalogue[K]>, string | number>>;
type Rest<K extends Key> = [Names<Catalogue[K]>] extends [never] ? [] : [Values<K>];

/** The keys of texts in which nothing is filled in. */
export type PlainKey = { [K in Key]: [Names<Catalogue[K]>] extends [never] ? K : never }[Key];

export type Translate = <K extends Key>(key: K, ...values: Rest<K>) => string;

const CATALOGUES: Readonly<Record<Language, Readonly<Record<Key, string>>>> = { en, ko, zh };

export const speaker =
  (language: Language): Translate =>
  (key, ...values) =>
    filled(language, CATALOGUES[language][key], values[0] ?? {});

interface Filling {
  readonly count?: string | number;
  readonly [name: string]: string | number | undefined;
}

function filled(language: Language, text: string, values: Filling): string {
  return form(text, language, values.count).replaceAll(/\{(\w+)\}/g, (whole, name: string) => {
    const value = values[name];
    if (value === undefined) return whole;
    return typeof value === "number" ? new Intl.NumberFormat(language).format(value) : value;
  });
}

function form(text: string, language: Language, count: string | number | undefined): string {
  const [one, other] = text.split("|");
  if (one === undefined || other === undefined) return text;
  return new Intl.PluralRules(language).select(Number(count)) === "one" ? one : other;
}
