/** Keys to press, one after the other: `"g r"`; with `+` at once: `"Ctrl+K"`. */
export function Kbd({ keys }: { keys: string }) {
  return (
    <span className="keys" aria-hidden="true">
      {keys.split(" ").map((key, index) => (
        <kbd key={index}>{key === "Escape" ? "Esc" : key.length === 1 ? key.toUpperCase() : key}</kbd>
      ))}
    </span>
  );
}
