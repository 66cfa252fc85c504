// The monotonic clock of the machine, in milliseconds. Unlike performance.now(), it has the same value in all threads and processes of the machine.

export function monotonicMs(): number {
  return Number(process.hrtime.bigint() / 1_000n) / 1_000
}
