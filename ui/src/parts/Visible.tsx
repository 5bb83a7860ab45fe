import { pieces } from "../model/odd.ts";

/** Text from somewhere else, in which nothing is unseen; never markup. */
export function Visible({ text }: { text: string }) {
  return pieces(text).map((piece, index) =>
    piece.odd === undefined ? piece.text : <Odd key={index} name={piece.odd} />,
  );
}

/** Stands for a character that does not show, or that makes others show otherwise. */
export function Odd({ name }: { name: string }) {
  return (
    <span className="odd" data-odd={name}>
      {name}
    </span>
  );
}
