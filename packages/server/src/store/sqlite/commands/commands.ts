// All commands of the writing thread, and the types of commands and replies, which are derived from them. Most are methods of a topic, which
// run in the transaction of their group; those that run at another time, or for which nobody waits, are commands of their own.

import type { WriterContext } from '../writing/writer-context.ts'
import { bookCommands, bookWrites } from './book-commands.ts'
import { configurationWrites } from './configuration-writes.ts'
import { deletionWrites } from './deletion-writes.ts'
import { documentWrites } from './document-writes.ts'
import { messageCommands } from './message-commands.ts'
import type { Noted } from './protocol.ts'
import { quarantineWrites } from './quarantine-writes.ts'
import { replayWrites } from './replay-writes.ts'

function createTopics(context: WriterContext) {
  return {
    configuration: configurationWrites(context),
    documents: documentWrites(context),
    deletions: deletionWrites(context),
    quarantine: quarantineWrites(context),
    replays: replayWrites(context),
    books: bookWrites(context),
  }
}

export type Topics = ReturnType<typeof createTopics>

/** A call of a method of a topic. */
export interface Call {
  topic: keyof Topics
  name: string
  args: readonly unknown[]
}

export function createCommands(context: WriterContext) {
  const topics = createTopics(context) as unknown as Record<string, Record<string, (...args: readonly unknown[]) => unknown>>
  const run = ({ topic, name, args }: Call): unknown => topics[topic]?.[name]?.(...args)
  return {
    ...messageCommands(context),
    ...bookCommands(context),
    call: { run },
    /** Makes several calls as one: all are committed, or none. Returns the list of their replies. */
    together: {
      async run({ calls }: { calls: readonly Call[] }): Promise<unknown[]> {
        const replies: unknown[] = []
        for (const call of calls) replies.push(await run(call))
        return replies
      },
    },
  }
}

type Commands = ReturnType<typeof createCommands>

export type CommandKind = keyof Commands
export type CommandOf<K extends CommandKind> = Noted &
  (Commands[K]['run'] extends (command: infer C, ...rest: never) => unknown ? C : never)
export type ReplyOf<K extends CommandKind> = Awaited<ReturnType<Commands[K]['run']>>
