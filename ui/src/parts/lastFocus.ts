// Where the focus was last, outside of all that lies over the page. A dialog cannot ask for it when it
// opens: a field in it may have taken the focus already, or the dialog before it has not let go.

let last: HTMLElement | null = null;

document.addEventListener("focusin", ({ target }) => {
  if (target instanceof HTMLElement && !target.closest("[role=dialog]")) last = target;
});

// Who leaves a field for nothing does not want to be put back into it; who leaves the window does.
document.addEventListener("focusout", ({ target, relatedTarget }) => {
  if (relatedTarget === null && target === last && document.hasFocus()) last = null;
});

/** Keep the focus in the view when what had it is about to go. */
export function focusView(): void {
  document.getElementById("main")?.focus({ preventScroll: true });
}

/** Give the focus back to the page. */
export function focusPage(): void {
  if (last?.isConnected) last.focus();
}
