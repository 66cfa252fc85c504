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
  // Of those that failed, expired or are retried: messages of the source `system`.
  | 'systemFailed'
  | 'systemExpired'

const REJECTED = 'rejected.'
const WARNING = 'warning.'
const LATENCY = 'latency.'

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

export function latencyName(bucket: number): string {
  return LATENCY + String(bucket)
}

/** Bucket n holds durations over 0.1 ms × 1.1^(n-1) and up to 0.1 ms × 1.1^n. */
export function latencyBucket(ms: number): number {
  if (!(ms > LEAST_MS)) return 0
  return Math.min(Math.ceil(Math.log(ms / LEAST_MS) / Math.log(GROWTH)), LATENCY_BUCKETS - 1)
}

export function addCounts(into: StatCounts, counts: Readonly<StatCounts>): void {
  for (const [name, count] of Object.entries(counts)) into[name] = (Object.hasOwn(into, name) ? (into[name] as number) : 0) + count
}

export function countOf(counts: Readonly<StatCounts>, name: StatName): number {
  return counts[name] ?? 0
}

export function rejectedByCode(counts: Readonly<StatCounts>): Record<string, number> {
  return byCode(counts, REJECTED)
}

export function warningsByCode(counts: Readonly<StatCounts>): Record<string, number> {
  return byCode(counts, WARNING)
}

/** The counts whose names begin with a prefix, without it. */
function byCode(counts: Readonly<StatCounts>, prefix: string): Record<string, number> {
  const codes = Object.entries(counts).filter(([name]) => name.startsWith(prefix))
  return Object.fromEntries(codes.map(([name, count]) => [name.slice(prefix.length), count]))
}

/** Returns null if nothing was measured. */
export function latencyOf(counts: Readonly<StatCounts>): { p50: number; p95: number; p99: number } | null {
  const buckets = Object.entries(byCode(counts, LATENCY))
    .map(([bucket, count]): [number, number] => [Number(bucket), count])
    .sort(([a], [b]) => a - b)
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
