// The reading thread: what control asks, on a connection of its own, so that a question about a million rows holds up no
// commit. Each answer is one snapshot.

import { parentPort, workerData } from 'node:worker_threads'
import { createTurns } from '../../../timing/turns.ts'
import { InvalidCursor } from '../../store.ts'
import { Rows } from '../rows/rows.ts'
import { openReader } from '../schema/database.ts'
import { createReads, type Reads } from './reads.ts'

export interface Question {
  id: number
  topic: keyof Reads
  name: string
  args: unknown[]
}

export type Answer = { id: number; ok: true; value: unknown } | { id: number; ok: false; message: string; invalidCursor: boolean }

if (parentPort !== null) {
  const port = parentPort
  const database = openReader((workerData as { path: string }).path)
  const rows = new Rows(database)
  const reads = createReads(rows)
  const inTurn = createTurns()
  const answerTo = async ({ id, topic, name, args }: Question): Promise<void> => {
    let answer: Answer
    try {
      database.exec('BEGIN')
      const asked = reads[topic] as unknown as Record<string, (...args: unknown[]) => unknown>
      answer = { id, ok: true, value: await asked[name]?.(...args) }
    } catch (error) {
      answer = { id, ok: false, message: (error as Error).message, invalidCursor: error instanceof InvalidCursor }
    }
    // Not if the beginning failed, or SQLite ended it because the disk could not be read.
    if (database.isTransaction) database.exec('ROLLBACK')
    port.postMessage(answer)
  }
  port.on('message', (question: Question | 'close') => {
    void inTurn(async () => {
      if (question !== 'close') return answerTo(question)
      database.close()
      port.close()
    })
  })
}
