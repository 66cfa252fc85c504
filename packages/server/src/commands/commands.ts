// All commands, in the order and with the section titles that help shows. To add a command, add it here.

import { apply } from './configuration/apply.ts'
import { exportCommand } from './configuration/export.ts'
import { DELIVERY_COMMANDS } from './history/deliveries.ts'
import { differences } from './history/differences.ts'
import { events } from './history/events.ts'
import { MESSAGE_COMMANDS } from './history/messages.ts'
import { QUARANTINE_COMMANDS } from './history/quarantine.ts'
import { REPLAY_COMMANDS } from './history/replay.ts'
import { REPORT_COMMANDS } from './history/reports.ts'
import { sql } from './history/sql.ts'
import { tail } from './history/tail.ts'
import { importCommand } from './import/import.ts'
import { backup } from './installation/backup.ts'
import { catalogInstall } from './installation/catalog-install.ts'
import { catalogUpgrade } from './installation/catalog-upgrade.ts'
import { doctor } from './installation/doctor.ts'
import { migrateStore } from './installation/migrate-store.ts'
import { rotateKey } from './installation/rotate-key.ts'
import { warehouseInstall } from './installation/warehouse-install.ts'
import type { Command } from './line/command.ts'
import { completionCommand } from './line/completion.ts'
import type { Section } from './line/help.ts'
import { listen } from './listen/listen.ts'
import { LOGIN_COMMANDS } from './login/login.ts'
import { PLAN_COMMANDS } from './plans/plans.ts'
import { ALERT_COMMANDS } from './resources/alerts.ts'
import { CATALOG_COMMANDS } from './resources/catalog.ts'
import { DELETION_COMMANDS, SUPPRESSION_COMMANDS } from './resources/deletions.ts'
import { DESTINATION_COMMANDS } from './resources/destinations.ts'
import { OAUTH_APP_COMMANDS } from './resources/oauth-apps.ts'
import { SOURCE_COMMANDS } from './resources/sources.ts'
import { TOKEN_COMMANDS } from './resources/tokens.ts'
import { send } from './sending/send.ts'
import { serve } from './serve.ts'
import { importWorkspace } from './workspace/import-workspace.ts'

export const SECTIONS: readonly Section[] = [
  {
    title: 'Service',
    commands: [serve, doctor, backup, rotateKey, migrateStore, catalogInstall, catalogUpgrade, warehouseInstall],
  },
  {
    title: 'Login',
    commands: [...LOGIN_COMMANDS],
  },
  {
    title: 'Messages',
    commands: [
      send,
      listen,
      importCommand,
      tail,
      sql,
      ...MESSAGE_COMMANDS,
      events,
      ...QUARANTINE_COMMANDS,
      ...DELIVERY_COMMANDS,
      differences,
      ...REPLAY_COMMANDS,
      ...REPORT_COMMANDS,
    ],
  },
  {
    title: 'Configuration',
    commands: [
      ...SOURCE_COMMANDS,
      ...DESTINATION_COMMANDS,
      ...CATALOG_COMMANDS,
      ...PLAN_COMMANDS,
      ...OAUTH_APP_COMMANDS,
      ...TOKEN_COMMANDS,
      exportCommand,
      apply,
      importWorkspace,
    ],
  },
  {
    title: 'Alerts',
    commands: [...ALERT_COMMANDS],
  },
  {
    title: 'Users',
    commands: [...DELETION_COMMANDS, ...SUPPRESSION_COMMANDS],
  },
  {
    title: 'Shell',
    commands: [completionCommand(() => COMMANDS)],
  },
]

export const COMMANDS: readonly Command[] = SECTIONS.flatMap(({ commands }) => commands)
