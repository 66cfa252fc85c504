// What is stored of the upkeep of warehouses: how far it is, who does it, and what the last run found. One document per destination. A run has a lease, so
// that one node does it at a time; two would do no harm, because the engines decide by the manifest of a table what is replaced.

import type { DocumentStore } from './documents.ts'

export const WAREHOUSE_UPKEEP = 'warehouse-upkeep'
/** Longer than a step takes. A node that died is replaced after this time. */
export const LEASE_MS = 2 * 60_000

export interface UpkeepRun {
  /** In wall time. */
  startedAtMs: number
  /** Null while it runs, or is to be continued. */
  finishedAtMs: number | null
  /** Where it continues; null at the beginning. */
  cursor: string | null
  /** Files merged or removed, or rows deleted. */
  changed: number
  problems: readonly { code: string; message: string }[]
  /** Why the last step failed; null if it did not. The step is repeated. */
  error: string | null
  /** Somebody asked for a run at this time, in wall time. */
  wantedAtMs: number | null
  /** The runner that has the lease, and until when, in schedule time. */
  holder: string | null
  leaseUntilMs: number
}

const NEVER: UpkeepRun = {
  startedAtMs: 0,
  finishedAtMs: 0,
  cursor: null,
  changed: 0,
  problems: [],
  error: null,
  wantedAtMs: null,
  holder: null,
  leaseUntilMs: 0,
}

/** Null before the first run. */
export async function readUpkeep(documents: Pick<DocumentStore, 'get'>, destinationId: string): Promise<UpkeepRun | null> {
  const stored = await documents.get(WAREHOUSE_UPKEEP, destinationId)
  return stored === undefined ? null : { ...NEVER, ...(stored.doc as Partial<UpkeepRun>) }
}

/** Asks for a run, on whichever node. A run that is going on is repeated from its beginning when it has ended. */
export async function wantUpkeep(documents: DocumentStore, destinationId: string, nowMs: number): Promise<void> {
  await change(documents, destinationId, nowMs, (run) => ({ ...run, wantedAtMs: nowMs }))
}

/** Gives a runner the lease if nobody else has it and the run is due. If it is the only one, a lease of another is that of a process that has died. Returns the run, or null. */
export async function takeUpkeep(
  documents: DocumentStore,
  destinationId: string,
  about: { holder: string; isAlone: boolean; nowMs: number; scheduleMs: number; isDue: (run: UpkeepRun) => boolean },
): Promise<UpkeepRun | null> {
  const { holder, isAlone, nowMs, scheduleMs, isDue } = about
  let taken: UpkeepRun | null = null
  await change(documents, destinationId, nowMs, (run) => {
    taken = null
    const isLeased = !isAlone && run.holder !== null && run.holder !== holder && run.leaseUntilMs > scheduleMs
    if (isLeased || !isDue(run)) return null
    const fresh = { ...NEVER, startedAtMs: nowMs, finishedAtMs: null }
    taken = { ...(run.finishedAtMs === null ? run : fresh), holder, leaseUntilMs: scheduleMs + LEASE_MS }
    return taken
  })
  return taken
}

/** Stores what a step did. False if another runner has the lease by now. */
export async function noteUpkeep(
  documents: DocumentStore,
  destinationId: string,
  { holder, nowMs }: { holder: string; nowMs: number },
  step: (run: UpkeepRun) => UpkeepRun,
): Promise<boolean> {
  let isOurs = false
  await change(documents, destinationId, nowMs, (run) => {
    isOurs = run.holder === holder
    return isOurs ? step(run) : null
  })
  return isOurs
}

/** Null of `make` leaves it as it is. */
async function change(
  documents: DocumentStore,
  destinationId: string,
  nowMs: number,
  make: (run: UpkeepRun) => UpkeepRun | null,
): Promise<void> {
  await documents.update(WAREHOUSE_UPKEEP, [destinationId], (stored) => {
    const next = make({ ...NEVER, ...(stored.get(destinationId)?.doc as Partial<UpkeepRun> | undefined) })
    return next === null ? new Map() : new Map([[destinationId, { atMs: nowMs, doc: { ...next, problems: [...next.problems] } }]])
  })
}
