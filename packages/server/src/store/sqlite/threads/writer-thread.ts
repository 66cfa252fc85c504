// The writing thread, the only one that changes the file. It receives groups of commands and answers each when it is durable
// (group-writer.ts). It copies the write-ahead log into the file when the log has become long.

import { parentPort, workerData } from 'node:worker_threads'
import { releaseMemoryWhenIdle } from '../../../timing/idle-memory.ts'
import { SCHEDULE_SETTING, SCHEDULE_WALL_SETTING, scheduleMark } from '../../encoding/schedule-mark.ts'
import { createCommands } from '../commands/commands.ts'
import type { Answered, AnsweredGroup, Group, WriterCommand, WriterStart } from '../commands/protocol.ts'
import { lockStore, openProblem, StoreProblem } from '../schema/database.ts'
import { readSetting } from '../schema/settings.ts'
import { openWriterContext, type WriterOptions } from '../writing/writer-context.ts'
import { GroupWriter } from './group-writer.ts'
import { openWalIndex } from './wal-index.ts'

/** The number of pages in the log after which a checkpoint is made, 8 MB. Large enough that a page that is written often is copied only once, and small enough that the copy delays no request noticeably. */
const CHECKPOINT_FRAMES = 2_000

function openLocked(options: WriterOptions) {
  const lock = lockStore(options.path)
  try {
    const context = openWriterContext(options)
    const commands: Record<string, WriterCommand> = createCommands(context)
    return { lock, context, commands, log: openWalIndex(options.path) }
  } catch (error) {
    lock.release()
    throw error
  }
}

if (parentPort !== null) {
  const port = parentPort
  const options = workerData as WriterOptions
  try {
    const { lock, context, commands, log } = openLocked(options)
    const { database, seed } = context
    const writer = new GroupWriter(context, commands)

    let copiedTo = 0
    const checkpointIfLong = (): void => {
      try {
        const frames = log.frames()
        // The log started again from its beginning: a commit does this if the log was copied completely and nobody reads it.
        if (frames < copiedTo) copiedTo = 0
        if (frames - copiedTo < CHECKPOINT_FRAMES) return
        database.exec('PRAGMA wal_checkpoint(PASSIVE)')
        // Also if a reader prevented a part from being copied. That part is copied at the next checkpoint, not retried after every commit.
        copiedTo = frames
      } catch {
        // Retried after a later commit. No data is lost, because all commits are in the log.
      }
    }

    const close = (): void => {
      try {
        database.exec('PRAGMA wal_checkpoint(TRUNCATE)')
      } catch {
        // The next start reads the log. A full disk must not prevent the process from ending.
      }
      database.close()
      // Must come after closing the database: closing any handle of a file releases the locks that this process has on it.
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
    const mark = scheduleMark(readSetting(database, SCHEDULE_SETTING), readSetting(database, SCHEDULE_WALL_SETTING))
    port.postMessage({ ok: true, seed, scheduleMark: mark, lazy } satisfies WriterStart)
    releaseMemoryWhenIdle()
  } catch (error) {
    const problem = openProblem(error, options.path)
    port.postMessage({ ok: false, problem: problem instanceof StoreProblem, message: (problem as Error).message } satisfies WriterStart)
    port.close()
  }
}
