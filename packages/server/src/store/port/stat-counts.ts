// The counts over time and their names, which the code that counts, the store and the API share. Counts are sparse and stored by name, so counts of
// several nodes or several minutes are merged by addition. Durations are counted in buckets, each a tenth wider than the one before, so
// percentiles read from them are accurate to within 5 %. Pure functions.

export type StatCounts = Record<string, number>

type StatName =
  | 'accepted'
  | 'duplicates'
  | 'suppressed'
  | 'attempts'
  | 'delivered'
  | 'failed'
  | 'expired'
  | 'cancelled'
  | 'retried'
  // Deliveries that were owed because messages were accepted, and messages that were accepted into quarantine.
  | 'owed'
  | 'quarantined'
  // Of those that failed, expired or are retried: messages of the source `system`.
  | 'systemFailed'
  | 'systemExpired'
  // Messages that an ordered destination receives outside the order, because they have no key.
  | 'keyless'

const REJECTED = 'rejected.'
const WARNING = 'warning.'
const LATENCY = 'latency.'
const SKIPPED = 'skipped.'
const FROM = 'from.'
/** Of a count with this prefix, the largest value is kept: several nodes may see the same backlog. */
const LARGEST = 'max.'

/** The largest number of pending deliveries, and the largest age of the oldest one, in seconds. */
export const PENDING = `${LARGEST}pending`
export const OLDEST_SECONDS = `${LARGEST}oldest`

const LEAST_MS = 0.1
const GROWTH = 1.1
/** The last bucket holds everything from about 11 minutes on. */
export const LATENCY_BUCKETS = 166

export function rejectedName(code: string): string {
  return REJECTED + code
}

export function warningName(code: string): string {
  return WARNING + code
}

/** Messages of a source that a destination was not sent, by the reason, once for each destination. */
export function skippedName(reason: string): string {
  return SKIPPED + reason
}

/** Deliveries owed to a destination because of messages of a source. */
export function fromName(sourceId: string): string {
  return FROM + sourceId
}

/** Whether a count is kept only per minute: it is about what happens now, and its name is long. */
export function isOnlyRecent(name: string): boolean {
  return name.startsWith(FROM)
}

export function isLargest(name: string): boolean {
  return name.startsWith(LARGEST)
}

/** The bucket of a latency count; null if it is another count. */
export function bucketOfName(name: string): number | null {
  return name.startsWith(LATENCY) ? Number(name.slice(LATENCY.length)) : null
}

export function latencyName(bucket: number): string {
  return LATENCY + String(bucket)
}

/** Bucket n holds durations over 0.1 ms × 1.1^(n-1) and up to 0.1 ms × 1.1^n. */
export function latencyBucket(ms: number): number {
  if (!(ms > LEAST_MS)) return 0
  return Math.min(Math.ceil(Math.log(ms / LEAST_MS) / Math.log(GROWTH)), LATENCY_BUCKETS - 1)
}

/** Adds counts of the same subject, from another time or node. */
export function addCounts(into: StatCounts, counts: Readonly<StatCounts>): void {
  for (const [name, count] of Object.entries(counts)) put(into, name, count, isLargest(name))
}

/** Adds counts of another subject: their backlogs add up, but the oldest delivery is that of one of them. */
export function addSubject(into: StatCounts, counts: Readonly<StatCounts>): void {
  for (const [name, count] of Object.entries(counts)) if (!isOnlyRecent(name)) put(into, name, count, name === OLDEST_SECONDS)
}

function put(into: StatCounts, name: string, count: number, isLargestKept: boolean): void {
  const before = Object.hasOwn(into, name) ? (into[name] as number) : 0
  into[name] = isLargestKept ? Math.max(before, count) : before + count
}

export function countOf(counts: Readonly<StatCounts>, name: StatName | typeof PENDING | typeof OLDEST_SECONDS): number {
  return counts[name] ?? 0
}

export function rejectedByCode(counts: Readonly<StatCounts>): Record<string, number> {
  return byCode(counts, REJECTED)
}

export function warningsByCode(counts: Readonly<StatCounts>): Record<string, number> {
  return byCode(counts, WARNING)
}

export function skippedByReason(counts: Readonly<StatCounts>): Record<string, number> {
  return byCode(counts, SKIPPED)
}

export function bySource(counts: Readonly<StatCounts>): Record<string, number> {
  return byCode(counts, FROM)
}

/** The counts whose names begin with a prefix, without it. */
function byCode(counts: Readonly<StatCounts>, prefix: string): Record<string, number> {
  const codes = Object.entries(counts).filter(([name]) => name.startsWith(prefix))
  return Object.fromEntries(codes.map(([name, count]) => [name.slice(prefix.length), count]))
}

function bucketsOf(counts: Readonly<StatCounts>): [bucket: number, count: number][] {
  return Object.entries(byCode(counts, LATENCY))
    .map(([bucket, count]): [number, number] => [Number(bucket), count])
    .sort(([a], [b]) => a - b)
}

/** How many durations there were in each of some wider buckets, whose limits are powers of two milliseconds. Empty buckets are left out. */
export function latencyHistogram(counts: Readonly<StatCounts>): { upToMs: number; count: number }[] {
  const wide = new Map<number, number>()
  for (const [bucket, count] of bucketsOf(counts)) {
    const upToMs = 2 ** Math.ceil(Math.log2(middleOf(bucket)))
    wide.set(upToMs, (wide.get(upToMs) ?? 0) + count)
  }
  return Array.from(wide, ([upToMs, count]) => ({ upToMs, count }))
}

/** Returns null if nothing was measured. */
export function latencyOf(counts: Readonly<StatCounts>): { p50: number; p95: number; p99: number } | null {
  const buckets = bucketsOf(counts)
  const total = buckets.reduce((sum, [, count]) => sum + count, 0)
  if (total === 0) return null
  const at = (share: number): number => {
    let below = 0
    for (const [bucket, count] of buckets) {
      below += count
      if (below >= total * share) return middleOf(bucket)
    }
    return middleOf((buckets.at(-1) as [number, number])[0])
  }
  return { p50: at(0.5), p95: at(0.95), p99: at(0.99) }
}

function middleOf(bucket: number): number {
  return Math.round(LEAST_MS * GROWTH ** (bucket - 0.5) * 1_000) / 1_000
}
