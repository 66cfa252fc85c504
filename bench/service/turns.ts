// Runs in turns: every competitor once in a round, in another order each round, and a failure is noted instead of thrown,
// because one failed run must not cost the report of all others.

import { startNoiseMeter } from './noise.ts'

export type Round<Key, Run> = Map<Key, Run>

export interface Turns {
  failures: string[]
  /** Per part, the share of the machine that other work took in each of its runs. */
  noise: Map<string, number[]>
  attempt<Run>(part: string, what: string, measure: () => Promise<Run>): Promise<Run | undefined>
  take<Key extends string | number, Run>(
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

const FAILURE_CHARS = 400

export function createTurns(): Turns {
  const failures: string[] = []
  const noise = new Map<string, number[]>()
  async function attempt<Run>(part: string, name: string, measure: () => Promise<Run>): Promise<Run | undefined> {
    const what = [part, name].filter(Boolean).join('  ')
    const startedAt = performance.now()
    const stopMeter = startNoiseMeter()
    const seconds = () => `${((performance.now() - startedAt) / 1_000).toFixed(1)} s`
    try {
      const run = await measure()
      const share = stopMeter()
      noise.set(part, [...(noise.get(part) ?? []), share])
      console.error([what, seconds(), progressText(run), `others ${(share * 100).toFixed(0)} %`].filter(Boolean).join('  '))
      return run
    } catch (error) {
      const message = `${what}: ${(error as Error).message}`
      console.error(`failed after ${seconds()}  ${message}`)
      failures.push(message.slice(0, FAILURE_CHARS).replaceAll(/\s+/g, ' '))
      return undefined
    }
  }
  return {
    failures,
    noise,
    attempt,
    async take(part, what, rounds, competitors) {
      const taken = []
      for (let index = 0; index < rounds; index += 1) {
        const round = new Map()
        const turn = index % Math.max(1, competitors.length)
        for (const { key, measure } of [...competitors.slice(turn), ...competitors.slice(0, turn)]) {
          const run = await attempt(part, [what, key, `${index + 1}/${rounds}`].filter(Boolean).join('  '), measure)
          if (run !== undefined) round.set(key, run)
        }
        taken.push(round)
      }
      return taken
    },
  }
}

function progressText(run: unknown): string {
  const { eventsPerSecond, cpuUsPerEvent, ackedMs } = (run ?? {}) as Partial<Record<string, number>> & { ackedMs?: { p50: number } }
  const facts = [
    eventsPerSecond !== undefined && `${eventsPerSecond.toFixed(0)} events/s`,
    cpuUsPerEvent !== undefined && `${cpuUsPerEvent.toFixed(1)} CPU µs/event`,
    ackedMs && `p50 ${ackedMs.p50.toFixed(2)} ms`,
  ]
  return facts.filter(Boolean).join('  ')
}
