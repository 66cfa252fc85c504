// All commands of the writing thread, and the types of commands and replies, which are derived from them. The commands
// of a topic are in one file; a new topic is one more line here.

import type { WriterContext } from '../writing/writer-context.ts'
import { bookCommands } from './book-commands.ts'
import { configurationCommands } from './configuration-commands.ts'
import { deletionCommands } from './deletion-commands.ts'
import { documentCommands } from './document-commands.ts'
import { messageCommands } from './message-commands.ts'
import type { Noted, WriterCommand } from './protocol.ts'
import { quarantineCommands } from './quarantine-commands.ts'
import { replayCommands } from './replay-commands.ts'

export function createCommands(context: WriterContext) {
  const single = {
    ...messageCommands(context),
    ...configurationCommands(context),
    ...deletionCommands(context),
    ...replayCommands(context),
    ...quarantineCommands(context),
    ...bookCommands(context),
    ...documentCommands(context),
  }
  /** Runs several commands as one: all are committed, or none. Returns the list of their replies. */
  const together = {
    async run({ kinds, commands }: { kinds: readonly string[]; commands: readonly Noted[] }, buffer: ArrayBuffer): Promise<unknown[]> {
      const replies: unknown[] = []
      for (const [at, kind] of kinds.entries()) {
        replies.push(await ((single as Record<string, WriterCommand>)[kind] as WriterCommand).run(commands[at] as never, buffer))
      }
      return replies
    },
  }
  return { ...single, together }
}

type Commands = ReturnType<typeof createCommands>

export type CommandKind = keyof Commands
export type CommandOf<K extends CommandKind> = Noted &
  (Commands[K]['run'] extends (command: infer C, ...rest: never) => unknown ? C : never)
export type ReplyOf<K extends CommandKind> = Awaited<ReturnType<Commands[K]['run']>>
