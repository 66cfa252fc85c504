// Which keys stored secrets are sealed with, told from the texts that hold them. Sealed as secret-box.ts does it.

export function encryptionKeyIds(texts: Iterable<string>): string[] {
  const found = new Set<string>()
  for (const text of texts)
    for (const [, id] of text.matchAll(/(?<![\w-])v1\.([A-Za-z0-9_-]{8})\.[A-Za-z0-9_-]{38,}/g)) found.add(id as string)
  return [...found]
}
