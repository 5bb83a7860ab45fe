// Stands in for react-style-singleton, by which Radix keeps the page still behind a dialog: that one
// adds a <style> element, for which the server's content policy would have to let every inline style
// in. A sheet that a script makes needs no such thing. `vite.config.ts` puts this in its place.

import { useEffect } from "react";

type Sheet = (props: { readonly styles: string; readonly dynamic?: boolean }) => null;

/** A component that adds its styles to the page once, as long as one of it is there. */
export function styleSingleton(): Sheet {
  let users = 0;
  let sheet: CSSStyleSheet | null = null;
  return function Styles({ styles, dynamic }) {
    // As in the original: only dynamic styles may change while they are there.
    const changes = dynamic === true && styles;
    useEffect(() => {
      if (users++ === 0) {
        sheet = new CSSStyleSheet();
        sheet.replaceSync(styles);
        document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
      }
      return () => {
        if (--users > 0) return;
        document.adoptedStyleSheets = document.adoptedStyleSheets.filter((one) => one !== sheet);
      };
      // eslint-disable-next-line react-hooks/exhaustive-deps -- the styles of the first one hold
    }, [changes]);
    return null;
  };
}
