// Files under their folders, as a list to draw: folders that hold nothing but one folder are joined.

import type { FilePatch } from "./patch.ts";

export type Branch =
  | { readonly kind: "folder"; readonly name: string; readonly path: string; readonly depth: number }
  | { readonly kind: "file"; readonly name: string; readonly file: number; readonly depth: number };

interface Folder {
  readonly folders: Map<string, Folder>;
  readonly files: number[];
}

const newFolder = (): Folder => ({ folders: new Map(), files: [] });

export function treeOf(files: readonly FilePatch[]): readonly Branch[] {
  const top = newFolder();
  files.forEach((file, index) => {
    let folder = top;
    for (const part of file.path.split("/").slice(0, -1)) {
      const next = folder.folders.get(part) ?? newFolder();
      folder.folders.set(part, next);
      folder = next;
    }
    folder.files.push(index);
  });
  const branches: Branch[] = [];
  add(branches, top, files, "", 0);
  return branches;
}

function add(branches: Branch[], folder: Folder, files: readonly FilePatch[], path: string, depth: number): void {
  for (const [name, inner] of [...folder.folders].sort(([a], [b]) => (a < b ? -1 : 1))) {
    let [said, below] = [name, inner];
    for (let only = theOnlyFolder(below); only; only = theOnlyFolder(below)) {
      said = `${said}/${only[0]}`;
      below = only[1];
    }
    const full = path + said;
    branches.push({ kind: "folder", name: said, path: full, depth });
    add(branches, below, files, `${full}/`, depth + 1);
  }
  const named = folder.files.map((file) => ({ file, name: (files[file]?.path ?? "").slice(path.length) }));
  for (const { file, name } of named.sort((a, b) => (a.name < b.name ? -1 : 1))) {
    branches.push({ kind: "file", name, file, depth });
  }
}

const theOnlyFolder = (folder: Folder): [string, Folder] | undefined =>
  folder.files.length === 0 && folder.folders.size === 1 ? [...folder.folders][0] : undefined;

/** The files in the order of the tree, so that the next one is the next one below. */
export function inTreeOrder(files: readonly FilePatch[]): readonly FilePatch[] {
  return treeOf(files).flatMap((branch) => {
    const file = branch.kind === "file" ? files[branch.file] : undefined;
    return file ? [file] : [];
  });
}
