// Where the focus was last, outside of all that lies over the page. A dialog cannot ask for it when it
// opens: a field in it may have taken the focus already, or the dialog before it has not let go.

let last: HTMLElement | null = null;

document.addEventListener("focusin", ({ target }) => {
  if (target instanceof HTMLElement && !target.closest("[role=dialog]")) last = target;
});

/** Give the focus back to the page. */
export function focusPage(): void {
  if (last?.isConnected) last.focus();
}
