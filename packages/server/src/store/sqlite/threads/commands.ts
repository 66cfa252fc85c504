// Every command of the writing thread, and from them the types of what the main thread sends and gets back. The commands
// of a topic are kept in one file; a new topic is one more line here.

import { messageCommands } from '../messages/message-commands.ts'
import { bookCommands } from '../rows/book-commands.ts'
import { configurationCommands } from '../rows/configuration-commands.ts'
import { deletionCommands } from '../rows/deletion-commands.ts'
import { replayCommands } from '../rows/replay-commands.ts'
import type { Noted } from './protocol.ts'
import type { WriterParts } from './writer-parts.ts'

export function createCommands(parts: WriterParts) {
  return {
    ...messageCommands(parts),
    ...configurationCommands(parts),
    ...deletionCommands(parts),
    ...replayCommands(parts),
    ...bookCommands(parts),
  }
}

type Commands = ReturnType<typeof createCommands>

export type Kind = keyof Commands
export type CommandOf<K extends Kind> = Noted & (Commands[K]['run'] extends (command: infer C, ...rest: never) => unknown ? C : never)
export type ReplyOf<K extends Kind> = Awaited<ReturnType<Commands[K]['run']>>
