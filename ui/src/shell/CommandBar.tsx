import { Command } from "cmdk";
import { useEffect } from "react";
import { useT } from "../i18n/index.ts";
import { Kbd } from "../parts/Kbd.tsx";
import { focusPage } from "../parts/lastFocus.ts";
import { actionsOf, inOrder, useOffered } from "./actions.ts";
import { useShell } from "./state.ts";

/** Every action there is, by a few of its letters. Ctrl or Cmd with K, from everywhere. */
export function CommandBar() {
  const t = useT();
  const shown = useShell((shell) => shell.shown);
  const offered = useOffered();
  const { open, close } = useShell.getState();

  useEffect(() => {
    function pressed(event: KeyboardEvent): void {
      if (event.key.toLowerCase() !== "k" || !(event.ctrlKey || event.metaKey) || event.altKey) return;
      event.preventDefault();
      if (useShell.getState().shown === "commands") close();
      else open("commands");
    }
    window.addEventListener("keydown", pressed);
    return () => {
      window.removeEventListener("keydown", pressed);
    };
  }, [open, close]);

  const isOpen = shown === "commands";
  useEffect(() => {
    if (!isOpen) return;
    return () => {
      // Unless what was chosen has put the focus elsewhere.
      setTimeout(() => {
        if (document.activeElement === document.body) focusPage();
      }, 50);
    };
  }, [isOpen]);

  const groups = inOrder(actionsOf(offered).filter((action) => !action.hidden), t);
  return (
    <Command.Dialog
      open={isOpen}
      onOpenChange={(opens) => {
        if (opens) open("commands");
        else close();
      }}
      label={t("command.title")}
      overlayClassName="scrim"
      contentClassName="dialog commands"
      loop
    >
      <Command.Input placeholder={t("command.placeholder")} aria-label={t("command.title")} />
      <Command.List>
        <Command.Empty>{t("command.empty")}</Command.Empty>
        {groups.map(([group, actions]) => (
          <Command.Group key={group} heading={group}>
            {actions.map(({ id, title, keys, disabled, run }) => (
              <Command.Item
                key={id}
                value={`${title} ${id}`}
                disabled={disabled !== undefined}
                onSelect={() => {
                  close();
                  // After the dialog has given the focus back: the action may move it on.
                  setTimeout(run);
                }}
              >
                <span className="ellipsis">{title}</span>
                {disabled !== undefined && <span className="subtle">{disabled}</span>}
                {keys !== undefined && <Kbd keys={keys} />}
              </Command.Item>
            ))}
          </Command.Group>
        ))}
      </Command.List>
    </Command.Dialog>
  );
}
