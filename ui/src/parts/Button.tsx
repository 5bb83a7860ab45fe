import type { ButtonHTMLAttributes, ReactNode, Ref } from "react";
import { Kbd } from "./Kbd.tsx";

interface Props extends ButtonHTMLAttributes<HTMLButtonElement> {
  /** One primary in a group. `apply` and `danger` are solid; `warn` and `no` are outlined. */
  readonly look?: "plain" | "primary" | "ghost" | "apply" | "danger" | "warn" | "no";
  readonly small?: boolean;
  /** The key that does the same, printed beside the words. */
  readonly keys?: string;
  readonly busy?: boolean;
  /** Why it cannot be pressed now; it is told and shown, instead of a button that is just dead. */
  readonly blocked?: string | undefined;
  readonly ref?: Ref<HTMLButtonElement>;
  readonly children: ReactNode;
}

export function Button({ look = "plain", small, keys, busy, blocked, className, children, ...rest }: Props) {
  const off = busy === true || blocked !== undefined;
  return (
    <button
      type="button"
      {...rest}
      className={["button", className].filter(Boolean).join(" ")}
      data-look={look}
      data-small={small ? true : undefined}
      aria-disabled={off || undefined}
      aria-busy={busy ? true : undefined}
      title={blocked ?? rest.title}
      onClick={(event) => {
        if (off) event.preventDefault();
        else rest.onClick?.(event);
      }}
    >
      {children}
      {keys !== undefined && <Kbd keys={keys} />}
    </button>
  );
}
