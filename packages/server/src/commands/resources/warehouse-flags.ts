// The flags that create a warehouse: --lake for a folder below the folder of lakes, and --warehouse-file for everything else. Passwords are read from the
// file, and are never on the command line.

import type { JsonObject } from '@switchyard/protocol'
import { type Call, CommandProblem, EXIT, type Flag, UsageProblem } from '../line/command.ts'
import { readObjectFile } from '../line/input.ts'

export const WAREHOUSE_FLAGS: Readonly<Record<string, Flag>> = {
  lake: {
    placeholder: 'FOLDER',
    description:
      'Create a lake of Parquet files in this folder, such as main: a path below SWITCHYARD_LAKE_DIR of the service. The folder need not exist.',
  },
  'warehouse-file': {
    placeholder: 'FILE',
    description: 'Create a warehouse with the settings in a YAML or JSON file: `warehouse`, with engine and url, and optionally `load`.',
  },
}

/** The settings of a warehouse; null if the destination is of another kind. */
export async function warehouseOf(call: Call): Promise<JsonObject | null> {
  const [folder, path] = [call.flag('lake'), call.flag('warehouse-file')]
  if (folder !== undefined) return { type: 'warehouse', warehouse: { engine: 'parquet', url: await folderUrl(call, folder) } }
  if (path === undefined) return null
  const { warehouse, load, ...others } = await readObjectFile('--warehouse-file', path)
  const [other] = Object.keys(others)
  if (other !== undefined)
    throw new UsageProblem(`--warehouse-file: ${path} has the key ${JSON.stringify(other)}. It may have only warehouse and load.`)
  if (warehouse === undefined)
    throw new UsageProblem(`--warehouse-file: ${path} must have the key warehouse, such as { engine: postgres, url: postgres://… }.`)
  return { type: 'warehouse', warehouse, ...(load !== undefined && { load }) }
}

async function folderUrl({ api }: Call, folder: string): Promise<string> {
  const parts = folder.split('/').filter((part) => part !== '')
  if (folder.startsWith('/') || parts.length === 0 || parts.some((part) => part === '.' || part === '..' || part === 'file:'))
    throw new UsageProblem('--lake must be a path below the folder of lakes, such as main or lakes/main.')
  const { url } = await api.get('/api/warehouse/folder')
  if (typeof url !== 'string')
    throw new CommandProblem('Set SWITCHYARD_LAKE_DIR of the service to a folder that all nodes share. Lakes are below it.', EXIT.failed)
  return `${url.replace(/\/$/, '')}/${parts.map(encodeURIComponent).join('/')}`
}
