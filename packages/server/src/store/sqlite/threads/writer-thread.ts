// The writing thread, the only one that changes the file. It receives groups of commands and answers each when it is durable
// (group-writer.ts). It copies the write-ahead log into the file when the log has become long.

import { parentPort, workerData } from 'node:worker_threads'
import { lockStore, openProblem, StoreProblem } from '../schema/database.ts'
import { readSetting } from '../schema/settings.ts'
import { createCommands } from './commands.ts'
import { GroupWriter } from './group-writer.ts'
import type { Answered, AnsweredGroup, Group, WriterCommand, WriterOptions, WriterStart } from './protocol.ts'
import { openWalIndex } from './wal-index.ts'
import { openWriterContext } from './writer-context.ts'

/** Pages in the log, 8 MB: enough to copy a page that is written often only once, few enough not to be felt. */
const CHECKPOINT_FRAMES = 2_000

function openLocked(options: WriterOptions) {
  const lock = lockStore(options.path)
  try {
    const parts = openWriterContext(options)
    const commands: Record<string, WriterCommand> = createCommands(parts)
    return { lock, parts, commands, log: openWalIndex(options.path) }
  } catch (error) {
    lock.release()
    throw error
  }
}

if (parentPort !== null) {
  const port = parentPort
  const options = workerData as WriterOptions
  try {
    const { lock, parts, commands, log } = openLocked(options)
    const { database, seed } = parts
    const writer = new GroupWriter(parts, commands)

    let copiedTo = 0
    const checkpointIfLong = (): void => {
      try {
        const frames = log.frames()
        // The log was started again at its beginning, which a commit does when all of it has been copied and nobody reads it.
        if (frames < copiedTo) copiedTo = 0
        if (frames - copiedTo < CHECKPOINT_FRAMES) return
        database.exec('PRAGMA wal_checkpoint(PASSIVE)')
        // Also when a reader held a part of it back: that part is tried again with the next, not after every commit.
        copiedTo = frames
      } catch {
        // Tried again after a later commit; what is committed is in the log.
      }
    }

    const close = (): void => {
      try {
        database.exec('PRAGMA wal_checkpoint(TRUNCATE)')
      } catch {
        // The log is read at the next start; a full disk must not keep the process from ending.
      }
      database.close()
      // After the database: closing any handle of a file gives up the locks that this process has on it.
      log.close()
      lock.release()
      port.close()
    }

    const answer = (answered: Answered, buffer: ArrayBuffer | null): void => {
      if (answered.commitMs !== null) checkpointIfLong()
      port.postMessage({ ...answered, buffer } satisfies AnsweredGroup, buffer === null ? [] : [buffer])
    }

    // The main thread sends 'close' when every group has been answered.
    port.on('message', (group: Group | 'close') => {
      if (group === 'close') return close()
      const answered = writer.run(group)
      if (answered instanceof Promise) void answered.then((later) => answer(later, group.buffer))
      else answer(answered, group.buffer)
    })
    const lazy = Object.keys(commands).filter((kind) => commands[kind]?.lazy)
    const scheduleMs = Number(readSetting(database, 'schedule_ms') ?? 0)
    port.postMessage({ ok: true, seed, scheduleMs, lazy } satisfies WriterStart)
  } catch (error) {
    const told = openProblem(error, options.path)
    port.postMessage({ ok: false, problem: told instanceof StoreProblem, message: (told as Error).message } satisfies WriterStart)
    port.close()
  }
}
