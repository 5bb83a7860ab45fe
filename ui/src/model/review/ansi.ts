// What programs print, without the marks that colour it in a terminal. Other controls stay, to be
// shown: nothing that moves a cursor or sets a title takes effect here.

// eslint-disable-next-line no-control-regex -- they are what is looked for
const STYLE = /\x1b\[[0-9;:]*m/g;

export const withoutStyles = (text: string): string => text.replaceAll(STYLE, "").replaceAll(/\r+\n/g, "\n");
