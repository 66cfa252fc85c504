// Runs every competitor once per round, in a different order each round. A failure is recorded instead of thrown,
// because one failed run must not prevent the report of all others. A run that other work disturbed is repeated, and the
// least disturbed of its tries counts: chosen by the noise, never by the result.

import { startNoiseMeter, untilCalm } from './machine-noise.ts'

export type Round<Key, Run> = Map<Key, Run>

export interface RoundRunner {
  failures: string[]
  /** Per part, the fraction of the machine that other work used during each run that counts. */
  noise: Map<string, number[]>
  attempt<Run>(part: string, what: string, measure: () => Promise<Run>): Promise<Run | undefined>
  run<Key extends string | number, Run>(
    part: string,
    what: string,
    rounds: number,
    competitors: Competitor<Key, Run>[],
  ): Promise<Round<Key, Run>[]>
}

export interface Competitor<Key, Run> {
  key: Key
  measure: () => Promise<Run>
}

interface Try<Run> {
  run: Run
  /** The fraction of the machine that other work used. */
  others: number
}

const FAILURE_CHARS = 400
const CALM_SHARE = 0.1
const CALM_WAIT_MS = 20_000

/** `tries` is the most runs of one competitor per round, if they are disturbed. */
export function createRoundRunner(tries: number): RoundRunner {
  const failures: string[] = []
  const noise = new Map<string, number[]>()

  async function attemptOnce<Run>(what: string, measure: () => Promise<Run>): Promise<Try<Run> | undefined> {
    const startedAt = performance.now()
    const stopMeter = startNoiseMeter()
    const seconds = () => `${((performance.now() - startedAt) / 1_000).toFixed(1)} s`
    try {
      const run = await measure()
      const others = stopMeter()
      console.error([what, seconds(), progressText(run), `others ${(others * 100).toFixed(0)} %`].filter(Boolean).join('  '))
      return { run, others }
    } catch (error) {
      const message = `${what}: ${(error as Error).message}`
      console.error(`failed after ${seconds()}  ${message}`)
      failures.push(message.slice(0, FAILURE_CHARS).replaceAll(/\s+/g, ' '))
      return undefined
    }
  }

  async function attemptCalmly<Run>(part: string, name: string, tries: number, measure: () => Promise<Run>): Promise<Run | undefined> {
    let calmest: Try<Run> | undefined
    for (let index = 0; index < tries && (calmest?.others ?? 1) > CALM_SHARE; index += 1) {
      if (index > 0) await untilCalm(CALM_SHARE, CALM_WAIT_MS)
      const made = await attemptOnce([part, name, index > 0 && 'again'].filter(Boolean).join('  '), measure)
      if (!made) return undefined
      if (!calmest || made.others < calmest.others) calmest = made
    }
    if (calmest) noise.set(part, [...(noise.get(part) ?? []), calmest.others])
    return calmest?.run
  }

  return {
    failures,
    noise,
    attempt: (part, name, measure) => attemptCalmly(part, name, 1, measure),
    async run(part, what, rounds, competitors) {
      const finished = []
      for (let index = 0; index < rounds; index += 1) {
        const round = new Map()
        const turn = index % Math.max(1, competitors.length)
        for (const { key, measure } of [...competitors.slice(turn), ...competitors.slice(0, turn)]) {
          const run = await attemptCalmly(part, [what, key, `${index + 1}/${rounds}`].filter(Boolean).join('  '), tries, measure)
          if (run !== undefined) round.set(key, run)
        }
        finished.push(round)
      }
      return finished
    },
  }
}

function progressText(run: unknown): string {
  const { eventsPerSecond, cpuUsPerEvent, ackedMs, threads } = (run ?? {}) as Partial<Record<string, number>> & {
    ackedMs?: { p50: number }
    threads?: Record<string, number>
  }
  const facts = [
    eventsPerSecond !== undefined && `${eventsPerSecond.toFixed(0)} events/s`,
    cpuUsPerEvent !== undefined && `${cpuUsPerEvent.toFixed(1)} CPU µs/event`,
    threads &&
      `(${Object.entries(threads)
        .map(([name, us]) => `${name} ${us.toFixed(1)}`)
        .join(', ')})`,
    ackedMs && `p50 ${ackedMs.p50.toFixed(2)} ms`,
  ]
  return facts.filter(Boolean).join('  ')
}
