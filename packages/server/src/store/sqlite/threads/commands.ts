// All commands of the writing thread, and the types of commands and replies, which are derived from them. The commands
// of a topic are in one file; a new topic is one more line here.

import { messageCommands } from '../messages/message-commands.ts'
import { bookCommands } from '../rows/book-commands.ts'
import { configurationCommands } from '../rows/configuration-commands.ts'
import { deletionCommands } from '../rows/deletion-commands.ts'
import { documentCommands } from '../rows/document-rows.ts'
import { quarantineCommands } from '../rows/quarantine-commands.ts'
import { replayCommands } from '../rows/replay-commands.ts'
import type { Noted, WriterCommand } from './protocol.ts'
import type { WriterContext } from './writer-context.ts'

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
