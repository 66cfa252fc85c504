// Finds the ids of the keys with which secrets are encrypted, in texts that contain encrypted secrets. See secret-box.ts for the format.

export function encryptionKeyIds(texts: Iterable<string>): string[] {
  const found = new Set<string>()
  for (const text of texts)
    for (const [, id] of text.matchAll(/(?<![\w-])v1\.([A-Za-z0-9_-]{8})\.[A-Za-z0-9_-]{38,}/g)) found.add(id as string)
  return [...found]
}
