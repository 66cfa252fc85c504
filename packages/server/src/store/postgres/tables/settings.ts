// Values that are stored beside the configuration and read when they are needed.

import type { SettingRows } from '../../configuration/configuration-rows.ts'
import { configurationTables } from '../../configuration/configuration-tables.ts'
import type { Ask, Database } from '../session/database.ts'
import { sqlOf } from './sql.ts'

export function createSettings(database: Database): SettingRows {
  return {
    ...configurationTables(sqlOf(database.ask)),
    useAssertion: (...use) => database.transaction((ask) => configurationTables(sqlOf(ask)).useAssertion(...use)),
  }
}

export function readSetting(ask: Ask, name: string): Promise<string | undefined> {
  return configurationTables(sqlOf(ask)).getSetting(name)
}
