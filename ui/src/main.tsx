import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { App } from "./App.tsx";
import { begin } from "./api/feeds.ts";
import { dress } from "./shell/prefs.ts";
import "./styles/tokens.css";
import "./styles/base.css";
import "./styles/parts.css";
import "./styles/cards.css";
import "./styles/inbox.css";
import "./styles/shell.css";

dress();
begin();
const place = document.getElementById("page");
if (place) {
  createRoot(place).render(
    <StrictMode>
      <App />
    </StrictMode>,
  );
}
