import { type Piece, pieces, piecesOfName } from "../model/odd.ts";

/** Text from somewhere else, in which nothing is unseen; never markup. */
export function Visible({ text }: { text: string }) {
  return drawn(pieces(text));
}

/** The same for a name: it is one line, and stays one. */
export function VisibleName({ name }: { name: string }) {
  return drawn(piecesOfName(name));
}

const drawn = (found: readonly Piece[]) =>
  found.map((piece, index) => (piece.odd === undefined ? piece.text : <Odd key={index} name={piece.odd} />));

/** Stands for a character that does not show, or that makes others show otherwise. */
export function Odd({ name }: { name: string }) {
  return (
    <span className="odd" data-odd={name}>
      {name}
    </span>
  );
}
