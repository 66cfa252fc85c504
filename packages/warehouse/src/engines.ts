// Opens the engine that the settings of a destination name.

import { resolve, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import { ClickHouseWarehouse } from './clickhouse/clickhouse-warehouse.ts'
import { WarehouseProblem } from './failure.ts'
import { FolderFiles } from './parquet/folder-files.ts'
import { ParquetLake } from './parquet/lake.ts'
import type { LakeFiles } from './parquet/lake-files.ts'
import { S3Files } from './parquet/s3-files.ts'
import { PostgresWarehouse } from './postgres/postgres-warehouse.ts'
import type { ParquetSettings, Warehouse, WarehouseContext, WarehouseSettings } from './warehouse.ts'

export function createWarehouse(settings: WarehouseSettings, context: WarehouseContext): Warehouse {
  if (settings.engine === 'parquet') return new ParquetLake(lakeFiles(settings, context), context.destinationId)
  if (settings.engine === 'postgres') return new PostgresWarehouse(settings)
  return new ClickHouseWarehouse(settings)
}

/** The files of a lake, in a folder or in a bucket. */
export function lakeFiles(settings: ParquetSettings, context: WarehouseContext): LakeFiles {
  return settings.url.startsWith('s3:') ? new S3Files(settings) : new FolderFiles(folderOf(settings, context))
}

/** The folder of a lake. It must be below the folder of lakes, so that settings cannot name any folder of the machine. */
function folderOf({ url }: ParquetSettings, { lakeFolder }: WarehouseContext): string {
  const folder = resolve(fileURLToPath(url))
  if (lakeFolder === null)
    throw new WarehouseProblem(
      'not_found',
      'Lakes in folders are not configured. Set SWITCHYARD_LAKE_DIR to a folder that all nodes share.',
    )
  const root = resolve(lakeFolder)
  if (folder !== root && !folder.startsWith(`${root}${sep}`))
    throw new WarehouseProblem('permission_missing', `${folder} is not below ${root}, the folder of lakes (SWITCHYARD_LAKE_DIR).`)
  return folder
}
