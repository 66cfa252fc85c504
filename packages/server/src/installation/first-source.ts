// The source that the first start creates, so that there is a write key to begin with.

import { generateWriteKey } from '../control/sources/sources.ts'
import { type Source, type Store, WriteKeyTaken } from '../store/store.ts'

/** Longer than a change of the configuration takes to reach the other nodes. */
const FIRST_SOURCE_WAIT_MS = 3_000

/** The first start creates the source `default`. Later starts return it, or another source if it was deleted. */
export async function findOrCreateFirstSource(store: Store): Promise<Source | undefined> {
  const named = (): Source | undefined => [...store.configuration().sources.values()].find(({ name }) => name === 'default')
  const any = (): Source | undefined => named() ?? [...store.configuration().sources.values()].find(({ builtIn }) => builtIn === undefined)
  // With several nodes, another node may have just created it, and this node may not have received the change yet.
  if ((await store.resources.getSetting('first_source')) !== undefined)
    return any() ?? (store.nodes === undefined ? undefined : waitForConfiguration(store, any, FIRST_SOURCE_WAIT_MS))
  // The source already exists if the first start was interrupted.
  const source = named() ?? (await createFirstSource(store))
  await store.resources.setSetting('first_source', source.id)
  return source
}

/** Nodes that start at the same time agree on its write key, and a write key is unique. So only one of them creates the source. */
async function createFirstSource(store: Store): Promise<Source> {
  const writeKey = await store.secrets.getOrCreate('first_write_key', generateWriteKey())
  const ofKey = (): Source | undefined => [...store.configuration().sources.values()].find(({ writeKeys }) => writeKeys.includes(writeKey))
  try {
    return await store.resources.createSource({ name: 'default', enabled: true, writeKeys: [writeKey], requireOAuth: false })
  } catch (error) {
    if (!(error instanceof WriteKeyTaken)) throw error
    const found = ofKey() ?? (await waitForConfiguration(store, ofKey, FIRST_SOURCE_WAIT_MS))
    if (found === undefined) throw error
    return found
  }
}

/** Waits until a change of the configuration by another node makes `find` return a value, or until the limit. */
function waitForConfiguration<T>(store: Store, find: () => T | undefined, limitMs: number): Promise<T | undefined> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve(find()), limitMs)
    store.onConfiguration(() => {
      const found = find()
      if (found === undefined) return
      clearTimeout(timer)
      resolve(found)
    })
  })
}
