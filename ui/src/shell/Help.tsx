import { useT } from "../i18n/index.ts";
import { Dialog } from "../parts/Dialog.tsx";
import { Kbd } from "../parts/Kbd.tsx";
import { actionsOf, inOrder, useOffered } from "./actions.ts";
import { useShell } from "./state.ts";

export function Help() {
  const t = useT();
  const shown = useShell((shell) => shell.shown);
  const offered = useOffered();
  const { open, close } = useShell.getState();
  const groups = inOrder(actionsOf(offered).filter((action) => action.keys !== undefined), t);
  return (
    <Dialog
      open={shown === "help"}
      onOpenChange={(isOpen) => {
        if (isOpen) open("help");
        else close();
      }}
      title={t("help.title")}
      lead={t("help.lead")}
      wide
    >
      <div className="key-groups">
        {groups.map(([group, actions]) => (
          <section key={group}>
            <h3>{group}</h3>
            <dl>
              {actions.map(({ id, title, keys = "" }) => (
                <div key={id}>
                  <dt>{title}</dt>
                  <dd>
                    <Kbd keys={keys} />
                    <span className="unseen">{keys}</span>
                  </dd>
                </div>
              ))}
            </dl>
          </section>
        ))}
      </div>
    </Dialog>
  );
}
