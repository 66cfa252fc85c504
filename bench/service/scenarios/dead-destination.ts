// A dead destination with a million pending deliveries: its effect on the latency of a healthy destination, and on the start time.
// The service with the backlog and one without alternate, so that the noise of the machine affects both.

import { type Backlog, copyOf, type StorePlace } from '../environment/backlog.ts'
import { type Latency, latencyOf, type Samples, sampleLatency } from '../environment/latency.ts'
import type { Service } from '../environment/service.ts'
import type { Traffic } from '../environment/traffic.ts'
import { untilQuiet } from './cpu-cost.ts'

export interface DeadRound {
  without: Latency
  with: Latency
}

export interface StartTimes {
  /** A store with nothing pending. */
  emptyMs: number[]
  /** The store with the backlog, after an orderly stop and after kill -9. */
  stoppedMs: number[]
  killedMs: number[]
}

const PER_SECOND = 200
const EVENTS_PER_TURN = 250
const LAST_WORK_EVENTS = 15_000

export async function measureDead(traffic: Traffic, none: Backlog, million: Backlog, rounds: number, events: number): Promise<DeadRound[]> {
  const services = [await copyOf(none).start(), await million.place.start()]
  const [without, withBacklog] = services as [Service, Service]
  const sample = async (service: Service, count: number) =>
    await sampleLatency(traffic, service.targetOf(await service.defaultSource()), count, PER_SECOND)
  try {
    for (const service of services) {
      await sample(service, Math.min(1_000, events))
      await untilQuiet(() => [service.pid])
    }
    const measured: DeadRound[] = []
    for (let round = 0; round < rounds; round += 1) measured.push(await measureRound())
    return measured
  } finally {
    for (const service of services) await service.stop()
  }

  /** Alternates about every second, so that a busy moment of the machine affects both. */
  async function measureRound(): Promise<DeadRound> {
    const samples = new Map<Service, Samples[]>(services.map((service) => [service, []]))
    for (let turn = 0; turn < events / EVENTS_PER_TURN; turn += 1) {
      for (const service of turn % 2 === 0 ? services : [withBacklog, without]) {
        samples.get(service)?.push(await sample(service, EVENTS_PER_TURN))
      }
    }
    return { without: latencyOf(samples.get(without) ?? []), with: latencyOf(samples.get(withBacklog) ?? []) }
  }
}

export async function measureStarts(traffic: Traffic, empty: StorePlace, full: StorePlace, rounds: number): Promise<StartTimes> {
  const times: StartTimes = { emptyMs: [], stoppedMs: [], killedMs: [] }
  for (let round = 0; round < rounds; round += 1) {
    times.emptyMs.push(await startAndEnd(empty))
    times.stoppedMs.push(await startAndKill(traffic, full))
    times.killedMs.push(await startAndEnd(full))
  }
  return times
}

async function startAndEnd(place: StorePlace): Promise<number> {
  const service = await place.start()
  await service.stop()
  return service.startMs
}

/** Kills the service while work is in flight, so that the next start has to recover it. */
async function startAndKill(traffic: Traffic, place: StorePlace): Promise<number> {
  const service = await place.start()
  await traffic.burst(service.targetOf(await service.defaultSource()), LAST_WORK_EVENTS)
  await service.stop('SIGKILL')
  return service.startMs
}
