// Warehouses: messages become rows in tables.

import { lazy } from 'react'
import type { DestinationOf, Kind } from '../../destination/kind.ts'
import { WAREHOUSE_SUMMARY } from './summary.tsx'

export const WAREHOUSE: Kind<DestinationOf<'warehouse'>> = {
  ...WAREHOUSE_SUMMARY,
  Page: lazy(() => import('./warehouse-page.tsx')),
  New: lazy(() => import('./new-warehouse.tsx')),
}
