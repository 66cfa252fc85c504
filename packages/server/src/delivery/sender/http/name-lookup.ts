// Resolves names with the system's resolver (hosts file included), so that names that do not resolve do not delay the others. The
// resolver runs in libuv's pool of four threads, and a name whose servers do not answer blocks one for 5 to 30 seconds. Therefore there is
// one lookup per name at a time; an answer is cached for a few seconds, and used for some minutes while newer lookups fail; and names not
// known to be quick never use all the threads. The guard checks every address before it is dialled, cached ones too. A limitation remains:
// three new names at once that do not resolve delay the first lookups of other new names; c-ares would not, but it ignores the hosts file.

import { lookup as dnsLookup } from 'node:dns/promises'
import { type CancelTimer, type SetTimer, systemTimer } from '../../../timing/timers.ts'

/** All addresses of a name, in the order to try them. */
export type Lookup = (hostname: string) => Promise<readonly string[]>

export interface NameLookupOptions {
  /** Default: the system's resolver. */
  ask?: Lookup
  /** Monotonic milliseconds. */
  now?: () => number
  setTimer?: SetTimer
}

export const FRESH_MS = 5_000
export const STALE_MS = 300_000
/** How long to wait for a newer answer if there is an old one. */
export const STALE_WAIT_MS = 250
/** A lookup that takes longer makes its name a slow one. */
export const SLOW_MS = 1_000
/** Of four threads: one is always left to names that are known to be quick. */
export const MAX_UNPROVEN = 3
export const MAX_SLOW = 1
const MAX_NAMES = 10_000

interface Name {
  addresses: readonly string[] | null
  atMs: number
  pace: 'new' | 'quick' | 'slow'
  pending: Promise<readonly string[]> | null
}

export function createNameLookup({
  ask = systemLookup,
  now = () => performance.now(),
  setTimer = systemTimer,
}: NameLookupOptions = {}): Lookup {
  const names = new Map<string, Name>()
  const waiting: Record<'new' | 'slow', (() => void)[]> = { new: [], slow: [] }
  const running = { new: 0, slow: 0 }

  /** Names that were never looked up come before those known to be slow. */
  function startNext(): void {
    while (running.new + running.slow < MAX_UNPROVEN) {
      const start = waiting.new.shift() ?? (running.slow < MAX_SLOW ? waiting.slow.shift() : undefined)
      if (start === undefined) return
      start()
    }
  }

  async function run(hostname: string, name: Name): Promise<readonly string[]> {
    const { pace } = name
    if (pace !== 'quick') {
      await new Promise<void>((resolve) => {
        waiting[pace].push(() => {
          running[pace]++
          resolve()
        })
        startNext()
      })
    }
    const startedAtMs = now()
    try {
      const addresses = await ask(hostname)
      name.addresses = addresses
      name.atMs = now()
      return addresses
    } catch (error) {
      // "No such name" is a valid answer, and replaces the cached one.
      if ((error as NodeJS.ErrnoException).code === 'ENOTFOUND') name.addresses = null
      throw error
    } finally {
      name.pending = null
      name.pace = now() - startedAtMs > SLOW_MS ? 'slow' : 'quick'
      if (pace !== 'quick') {
        running[pace]--
        startNext()
      }
    }
  }

  function nameOf(hostname: string): Name {
    let name = names.get(hostname)
    if (name === undefined) {
      if (names.size >= MAX_NAMES) names.clear()
      name = { addresses: null, atMs: 0, pace: 'new', pending: null }
      names.set(hostname, name)
    }
    return name
  }

  return (hostname) => {
    const name = nameOf(hostname)
    const ageMs = now() - name.atMs
    if (name.addresses !== null && ageMs < FRESH_MS) return Promise.resolve(name.addresses)
    name.pending ??= run(hostname, name)
    return name.addresses !== null && ageMs < STALE_MS ? newerOrOld(name.pending, name, name.addresses, setTimer) : name.pending
  }
}

/** Returns the newer answer if it arrives soon, otherwise the old one. */
async function newerOrOld(
  pending: Promise<readonly string[]>,
  name: Name,
  old: readonly string[],
  setTimer: SetTimer,
): Promise<readonly string[]> {
  let cancel: CancelTimer | null = null
  const timeout = new Promise<readonly string[]>((resolve) => {
    cancel = setTimer(() => resolve(old), STALE_WAIT_MS)
  })
  try {
    return await Promise.race([pending, timeout])
  } catch (error) {
    if (name.addresses === null) throw error
    return old
  } finally {
    ;(cancel as CancelTimer | null)?.()
  }
}

async function systemLookup(hostname: string): Promise<string[]> {
  const found = await dnsLookup(hostname, { all: true })
  return found.map(({ address }) => address)
}
