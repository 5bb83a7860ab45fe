// Words of agents are strangers' words. Markup is never a danger here, because nothing is set as
// markup; but the codes of a terminal would be noise, and marks that turn the direction of writing
// would let a text lie about its order. The first are taken out, the second made visible.

const ESC = String.fromCharCode(27);
const TERMINAL = new RegExp(
  `${ESC}\\][^${ESC}\\u0007]*(?:\\u0007|${ESC}\\\\)|${ESC}[\\[()][0-?]*[ -/]*[@-~]?|[\\u0000-\\u0008\\u000b-\\u001f\\u007f-\\u009f]`,
  "g",
);
const TURNING = new RegExp("[\\u061c\\u200e\\u200f\\u202a-\\u202e\\u2066-\\u2069]", "g");
const SHOWN = "\ufffd";

export const plain = (text: string): string =>
  text.replaceAll("\r\n", "\n").replaceAll(TERMINAL, "").replaceAll(TURNING, SHOWN);
