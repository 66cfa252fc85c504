// Threads of a node that end or hang: those that send requests, and those that run transformations.

import { connect } from 'node:net'
import type { Node } from '../../cluster/cluster.ts'
import type { Fault, Injection } from '../rounds/fault.ts'
import { injected } from '../rounds/round.ts'
import type { Random } from '../system/random.ts'
import type { System } from '../system/system.ts'

const CONTROL = new URL('../causes/thread-control.ts', import.meta.url).href
const ANNOUNCEMENT = /^threads can be ended at port (\d+)$/
/** A node waits up to 5 s before it replaces a thread that has ended repeatedly. */
const MOST_TRIES = 100
/** A node replaces a thread that has hung for 10 s, or for 20 s if it was just started. The rest is a margin for busy machines. */
const ENDED_MS = 90_000

const threadsOf = (): Pick<Injection, 'system' | 'stores' | 'perRound'> => ({
  stores: ['sqlite', 'postgres'],
  perRound: 25,
  system: () => ({ service: () => ({ env: { SWITCHYARD_SENDERS: '2' }, execArgv: ['--import', CONTROL] }) }),
})

const senderKilled: Injection = {
  key: 'sender-killed',
  title: 'A sender thread ends or hangs',
  how: 'The thread is terminated at a random moment. In one of fifteen cases it is blocked instead, until the node replaces it.',
  note: 'A file that is loaded into the node ends the thread, because signals cannot reach a single thread. Each node has two senders.',
  ...threadsOf(),
  cause: (system, random) => endThread(system, random, random.chance(1 / 15) ? 'block' : 'kill', 'switchyard-sender'),
}

const transformKilled: Injection = {
  key: 'transform-killed',
  title: 'A transformation thread ends',
  how: 'The thread is terminated at a random moment, as in `sender-killed`.',
  ...threadsOf(),
  cause: (system, random) => endThread(system, random, 'kill', 'transform'),
}

export const KILLED_THREADS: readonly Fault[] = [senderKilled, transformKilled].map(injected)

/** Resolves when the thread has ended. */
async function endThread(system: System, random: Random, act: 'kill' | 'block', name: string): Promise<void> {
  const node = random.pick(system.nodes)
  const nth = random.int(0, 1_000)
  for (let tries = 1; tries <= MOST_TRIES; tries++) {
    if ((await ask(node, `${act} ${name} ${nth}`)) !== 'none') return
    // The thread that ended before has not been replaced yet.
    await system.traffic.more(1)
  }
  throw new Error(`${node.name} has no thread named ${name}`)
}

async function ask({ service }: Node, line: string): Promise<string> {
  const { msg } = await service.logged(({ msg }) => ANNOUNCEMENT.test(msg))
  const port = Number(ANNOUNCEMENT.exec(msg)?.[1])
  return await new Promise((resolve, reject) => {
    let answer = ''
    const socket = connect(port, '127.0.0.1', () => socket.write(`${line}\n`))
    socket.setTimeout(ENDED_MS, () => socket.destroy(new Error(`no answer to "${line}" within ${ENDED_MS / 1_000} s`)))
    socket.setEncoding('utf8').on('data', (text: string) => {
      answer += text
    })
    socket.on('end', () => resolve(answer))
    socket.on('error', reject)
  })
}
