import { ImagePlus } from "lucide-react";
import { useState } from "react";
import { address, send } from "../../api/client.ts";
import type { BlobRef } from "../../api/types.ts";
import { useT } from "../../i18n/index.ts";
import { Button } from "../../parts/Button.tsx";
import { bytes } from "../../model/words.ts";
import { complain, toast } from "../../parts/toast.tsx";

/** An image that the server keeps, and how this page shows it. */
export interface Kept {
  readonly ref: BlobRef;
  readonly name: string;
  readonly shown: string;
}

/** How many images a run starts with, and how many bytes each may have. */
interface Limits {
  readonly most: number;
  readonly largest: number;
}

/** The images of a run to be started: chosen or pasted, kept by the server at once. */
export function useImages(limits: Limits | undefined) {
  const t = useT();
  const [kept, setKept] = useState<readonly Kept[]>([]);
  const [coming, setComing] = useState(0);

  async function add(files: Iterable<File>): Promise<void> {
    for (const file of files) {
      if (limits && file.size > limits.largest) {
        toast(t("start.imageTooLarge", { name: file.name, size: bytes(limits.largest) }), { tone: "warn" });
        continue;
      }
      setComing((count) => count + 1);
      try {
        const ref = await send<BlobRef>(address(["images"]), file);
        const image = { ref, name: file.name, shown: await asAddress(file) };
        setKept((all) => (all.some((one) => one.ref.sha256 === ref.sha256) ? all : [...all, image]));
      } catch (problem) {
        complain(problem);
      } finally {
        setComing((count) => count - 1);
      }
    }
  }

  function remove({ ref }: Kept): void {
    setKept((all) => all.filter((one) => one.ref.sha256 !== ref.sha256));
  }

  return { kept, limits, isComing: coming > 0, add, remove };
}

/** The file itself as an address: the page may show no other (its policy). */
function asAddress(file: File): Promise<string> {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => { resolve(typeof reader.result === "string" ? reader.result : ""); };
    reader.onerror = () => { reject(new Error(`${file.name} cannot be read`)); };
    reader.readAsDataURL(file);
  });
}

export function Images({ images: { kept, limits, add, remove } }: { images: ReturnType<typeof useImages> }) {
  const t = useT();
  return (
    <div className="field">
      <label className="button">
        <ImagePlus size={14} strokeWidth={1.5} aria-hidden />
        {t("start.addImages")}
        <input
          className="unseen"
          type="file"
          multiple
          accept="image/png,image/jpeg,image/gif,image/webp"
          onChange={({ target }) => {
            void add([...(target.files ?? [])]);
            target.value = "";
          }}
        />
      </label>
      {limits && <p className="subtle">{t("start.imagesHow", { most: limits.most, size: bytes(limits.largest) })}</p>}
      {kept.length > 0 && (
        <ul className="start-images" aria-label={t("start.images")}>
          {kept.map((image) => (
            <li key={image.ref.sha256}>
              <img src={image.shown} alt={image.name} />
              <Button onClick={() => { remove(image); }}>{t("start.removeImage", { name: image.name })}</Button>
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}
