// The disk of the store is full: a small file system of its own, filled to the last byte while messages flow.

import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { PostgresServer } from '../../../packages/server/src/store/postgres/fixtures/postgres-server.ts'
import { mountSmallDisk, type SmallDisk, whyNoSmallDisk } from '../../machine-faults/small-disk.ts'
import { type SourceStats, track } from '../../system/service.ts'
import type { Fault, RoundOptions, RoundResult } from '../rounds/fault.ts'
import { injectedRound } from '../rounds/round.ts'
import type { Random } from '../system/random.ts'
import { sendBatch } from '../system/send-batch.ts'
import type { System } from '../system/system.ts'

const SQLITE_MB = 192
const POSTGRES_MB = 384
/** Keeps the log short, so that most of the disk is left for the tables. */
const POSTGRES_SETTINGS = ['synchronous_commit=on', 'min_wal_size=32MB', 'max_wal_size=64MB']
/** The files of the store have free space inside, which these messages use up before a write fails. */
const LARGE_MESSAGES = 14
const LARGE_BYTES = 22_000
/** Each call has almost half a megabyte. */
const MOST_CALLS = 400

const diskFull: Fault = {
  key: 'disk-full',
  title: 'The disk is full',
  how: "The SQLite file or PostgreSQL's data folder is on a small file system. It is filled to the last byte, until at least one call was refused and for up to 2 s longer. SQLite: in 3 of 10 cases the node is killed and started while the disk is full. PostgreSQL: the server or a node is killed, each in 15 % of the cases, and started when there is space again.",
  stores: ['sqlite', 'postgres'],
  perRound: 12,
  unavailable: whyNoSmallDisk,
  note: 'The file system is a tmpfs. PostgreSQL shuts down if it cannot write its write-ahead log, and does not start again by itself: the test starts it when there is space.',
  round: (options) => (options.store === 'sqlite' ? roundOnSqlite(options) : roundOnPostgres(options)),
}

async function roundOnSqlite(options: RoundOptions): Promise<RoundResult> {
  using disk = mountSmallDisk(SQLITE_MB)
  const filler = new Filler(options.random)
  return await injectedRound(
    {
      system: () => ({ folder: disk.folder }),
      async cause(system, random) {
        await whileFull(disk, system, filler, async () => {
          if (!random.chance(0.3)) return
          await system.node(1).kill()
          await system.node(1).start()
          await filler.untilRefused(system)
        })
      },
      check: (system) => filler.problems(system),
    },
    options,
  )
}

async function roundOnPostgres(options: RoundOptions): Promise<RoundResult> {
  using disk = mountSmallDisk(POSTGRES_MB)
  const server = await PostgresServer.start({ parent: disk.folder, settings: POSTGRES_SETTINGS })
  const filler = new Filler(options.random)
  try {
    return await injectedRound(
      {
        system: () => ({ server }),
        async cause(system, random) {
          const node = random.pick(system.nodes)
          await whileFull(disk, system, filler, async () => {
            if (random.chance(0.15)) await system.cluster?.killServer()
            if (random.chance(0.15)) await node.kill()
          })
          if (!server.isRunning) await server.run()
          if (!node.isUp) await node.start()
        },
        check: (system) => filler.problems(system),
      },
      options,
    )
  } finally {
    await server.dispose()
  }
}

async function whileFull(disk: SmallDisk, system: System, filler: Filler, act: () => Promise<void>): Promise<void> {
  await filler.prepare(system)
  disk.fill()
  try {
    await filler.untilRefused(system)
    await act()
    await sleep(filler.random.int(0, 2_000))
  } finally {
    disk.free()
  }
}

/** Sends large messages of a source without destinations, and remembers which were acknowledged. */
class Filler {
  readonly random: Random
  #source: { id: string; writeKeys: string[] } | undefined
  #sent = 0
  #acknowledged = 0
  /** The messages of calls without an answer: they may be stored or not. */
  #unknown = 0

  constructor(random: Random) {
    this.random = random
  }

  async prepare(system: System): Promise<void> {
    this.#source ??= await system.api<{ id: string; writeKeys: string[] }>('/sources', { method: 'POST', body: { name: 'large messages' } })
  }

  /** Resolves when a node has refused a call because of the store. */
  async untilRefused(system: System): Promise<void> {
    for (let nth = 1; nth <= MOST_CALLS; nth++) {
      const status = await this.#call(this.random.pick(system.urls()))
      if (status === 503) return
      // PostgreSQL may end meanwhile, and calls then time out.
      if (status !== 200 && status !== null && status !== 401) throw new Error(`a call on the full disk was answered with ${status}`)
    }
    throw new Error(`no call was refused with 503: ${MOST_CALLS} large calls were made on the full disk`)
  }

  async #call(url: string): Promise<number | null> {
    const ids = Array.from({ length: LARGE_MESSAGES }, () => `large-${++this.#sent}`)
    const batch = ids.map((id) => track(id, { properties: { text: randomBytes(LARGE_BYTES).toString('base64') } }))
    try {
      const status = await sendBatch(url, this.#source?.writeKeys[0] ?? '', batch, 10_000)
      if (status === 200) this.#acknowledged += ids.length
      return status
    } catch {
      this.#unknown += ids.length
      return null
    }
  }

  async problems(system: System): Promise<string[]> {
    const { data } = await system.api<{ data: SourceStats[] }>('/stats/totals')
    const accepted = data.find(({ sourceId }) => sourceId === this.#source?.id)?.accepted ?? 0
    const isRight = accepted >= this.#acknowledged && accepted <= this.#acknowledged + this.#unknown
    return isRight
      ? []
      : [
          `${accepted} large messages are counted as accepted, but ${this.#acknowledged} were acknowledged and ${this.#unknown} got no answer`,
        ]
  }
}

export const FULL_DISK: readonly Fault[] = [diskFull]
