import { Dialog as Radix } from "radix-ui";
import type { ReactNode } from "react";
import { X } from "lucide-react";
import { useT } from "../i18n/index.ts";
import { focusPage } from "./lastFocus.ts";

interface Props {
  readonly open: boolean;
  readonly onOpenChange: (open: boolean) => void;
  readonly title: string;
  /** One sentence below the title. */
  readonly lead?: ReactNode;
  readonly wide?: boolean;
  /** The buttons at its foot, the main one last. */
  readonly foot?: ReactNode;
  readonly children?: ReactNode;
}

/** Keeps the focus inside while it is open, gives it back when it closes; Escape closes it. */
export function Dialog({ open, onOpenChange, title, lead, wide, foot, children }: Props) {
  const t = useT();
  return (
    <Radix.Root open={open} onOpenChange={onOpenChange}>
      <Radix.Portal>
        <Radix.Overlay className="scrim" />
        <Radix.Content
          className="dialog"
          data-wide={wide ? true : undefined}
          onCloseAutoFocus={(event) => {
            event.preventDefault();
            focusPage();
          }}
          {...(lead === undefined && { "aria-describedby": undefined })}>
          <header>
            <Radix.Title>{title}</Radix.Title>
            <Radix.Close className="button" data-look="ghost" aria-label={t("close")}>
              <X size={16} aria-hidden />
            </Radix.Close>
          </header>
          <div className="dialog-body">
            {lead !== undefined && (
              <Radix.Description asChild>
                <div className="muted">{lead}</div>
              </Radix.Description>
            )}
            {children}
          </div>
          {foot !== undefined && <footer>{foot}</footer>}
        </Radix.Content>
      </Radix.Portal>
    </Radix.Root>
  );
}
