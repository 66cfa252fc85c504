// Which source a write key belongs to, and whether samples of its rejected requests may be stored.

import type { Configuration, Source } from '../store/store.ts'
import { hasPrivacy } from './privacy/privacy.ts'

export type KeyLookup = ReturnType<typeof createKeyLookup>

/** The index is built once per configuration. */
export function createKeyLookup(configuration: () => Configuration) {
  let indexed: Configuration | undefined
  let sources = new Map<string, Source>()
  let anyPrivacy = false
  function index(): Configuration {
    const current = configuration()
    if (current === indexed) return current
    sources = new Map()
    anyPrivacy = false
    for (const source of current.sources.values()) {
      for (const key of source.writeKeys) sources.set(key, source)
      anyPrivacy ||= hasPrivacy(source)
    }
    return (indexed = current)
  }
  return {
    sourceOf(writeKey: string): Source | undefined {
      index()
      return sources.get(writeKey)
    },
    /** All write keys. */
    all(): string[] {
      index()
      return [...sources.keys()]
    },
    /**
     * Whether the start of a rejected request may be stored. Without a known source, it may not if any source has privacy rules, because the
     * write key may be an old or misspelled one of that source, or be in a body that cannot be parsed.
     */
    keepsSamples(sourceId: string | null): boolean {
      const source = index().sources.get(sourceId ?? '')
      return source === undefined ? !anyPrivacy : !hasPrivacy(source)
    },
  }
}
