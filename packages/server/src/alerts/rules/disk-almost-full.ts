// Disk Almost Full: the disk of a SQLite store. The disk of a PostgreSQL server is not visible from here.

import { KEEP, MINUTE_MS, minutesSetting, numberSetting, rule } from './rule.ts'

export interface Disk {
  nowMs: number
  /** Oldest first; the last one is now. Empty if the disk cannot be read. */
  readings: readonly { atMs: number; freeBytes: number; totalBytes: number }[]
}

const MIB = 1024 * 1024
/** Below this, the disk is almost full however small it is. */
const LEAST_FREE_BYTES = 256 * MIB

export const diskAlmostFull = rule({
  id: 'disk_almost_full',
  event: 'Disk Almost Full',
  subject: 'service',
  severity: () => 'critical',
  sentences: [
    'Open when less than {freePercent} % of the disk, or less than 256 MiB, is free.',
    'Close when there has been enough free space for {closeAfterMinutes} minutes.',
  ],
  description: 'The disk of the store is almost full. When it is full, the service rejects messages with status 503. Only with SQLite.',
  settings: {
    closeAfterMinutes: minutesSetting(5, 'Close it when there has been enough free space for this many minutes.', 60),
    freePercent: numberSetting(5, 1, 50, 'The disk is almost full if less than this percentage of it, or less than 256 MiB, is free.'),
  },
  judge({ nowMs, readings }: Disk, { closeAfterMinutes, freePercent }) {
    const last = readings.at(-1)
    if (last === undefined) return KEEP
    const isLow = ({ freeBytes, totalBytes }: (typeof readings)[number]): boolean =>
      freeBytes < LEAST_FREE_BYTES || freeBytes * 100 < freePercent * totalBytes
    const { freeBytes, totalBytes } = last
    const details = { freeBytes, totalBytes, freePercent: Math.floor((freeBytes * 1_000) / totalBytes) / 10 }
    if (isLow(last)) return { verdict: 'open', sinceMs: readings.find(isLow)?.atMs ?? nowMs, details }
    const lowAtMs = readings.reduce((latest, reading) => (isLow(reading) ? reading.atMs : latest), Number.NEGATIVE_INFINITY)
    return { verdict: nowMs - lowAtMs >= closeAfterMinutes * MINUTE_MS ? 'close' : 'keep', sinceMs: nowMs, details }
  },
  opened: (_name, { freeBytes, freePercent }) =>
    `The disk of the store is almost full: ${inMib(freeBytes)} (${String(freePercent)} %) is free. When it is full, messages are rejected with status 503. Free disk space, or lower SWITCHYARD_RETENTION_DAYS.`,
  closed: (_name, { freeBytes, freePercent }) =>
    `The disk of the store has enough space again: ${inMib(freeBytes)} (${String(freePercent)} %) is free.`,
  link: () => '/settings/about',
})

function inMib(bytes: unknown): string {
  return `${Math.floor(Number(bytes) / MIB).toLocaleString('en-US')} MiB`
}
