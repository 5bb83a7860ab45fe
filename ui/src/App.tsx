import { QueryClientProvider } from "@tanstack/react-query";
import { queries } from "./api/queries.ts";
import { Shell } from "./shell/Shell.tsx";

export function App() {
  return (
    <QueryClientProvider client={queries}>
      <Shell />
    </QueryClientProvider>
  );
}
