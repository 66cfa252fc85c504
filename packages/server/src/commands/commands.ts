// All commands, in the order and under the titles in which help shows them. A new command is one entry here.

import { apply } from './apply.ts'
import { backup } from './backup.ts'
import { BOOK_COMMANDS } from './books.ts'
import type { Command } from './command.ts'
import { completionCommand } from './completion.ts'
import { DELETION_COMMANDS, SUPPRESSION_COMMANDS } from './deletions.ts'
import { DELIVERY_COMMANDS } from './deliveries.ts'
import { DESTINATION_COMMANDS } from './destinations.ts'
import { doctor } from './doctor.ts'
import { exportCommand } from './export.ts'
import type { Section } from './help.ts'
import { importCommand } from './import.ts'
import { listen } from './listen.ts'
import { MESSAGE_COMMANDS } from './messages.ts'
import { migrateStore } from './migrate-store.ts'
import { OAUTH_APP_COMMANDS } from './oauth-apps.ts'
import { REPLAY_COMMANDS } from './replay.ts'
import { rotateKey } from './rotate-key.ts'
import { send } from './send.ts'
import { serve } from './serve.ts'
import { SOURCE_COMMANDS } from './sources.ts'
import { tail } from './tail.ts'
import { TOKEN_COMMANDS } from './tokens.ts'

export const SECTIONS: readonly Section[] = [
  {
    title: 'The service',
    commands: [serve, doctor, backup, rotateKey, migrateStore],
  },
  {
    title: 'Messages',
    commands: [send, listen, importCommand, tail, ...MESSAGE_COMMANDS, ...DELIVERY_COMMANDS, ...REPLAY_COMMANDS, ...BOOK_COMMANDS],
  },
  {
    title: 'Configuration',
    commands: [...SOURCE_COMMANDS, ...DESTINATION_COMMANDS, ...OAUTH_APP_COMMANDS, ...TOKEN_COMMANDS, exportCommand, apply],
  },
  {
    title: 'Users',
    commands: [...DELETION_COMMANDS, ...SUPPRESSION_COMMANDS],
  },
  {
    title: 'The shell',
    commands: [completionCommand(() => COMMANDS)],
  },
]

export const COMMANDS: readonly Command[] = SECTIONS.flatMap(({ commands }) => commands)
