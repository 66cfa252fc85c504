// What every page may ask about a warehouse, and how its attempts are shown: a load, with its tables.

import { AttemptFrame } from '../../components/attempt.tsx'
import { DestinationIcon } from '../../components/icons.tsx'
import { LongNote, SmallStrong } from '../../components/styled.tsx'
import type { Attempt, AttemptProps, DestinationOf, KindSummary } from '../../destination/kind.ts'
import { bytes, duration, exactCount, plural } from '../../text/format.ts'
import { reasonAdvice } from '../../text/reasons.ts'

export const WAREHOUSE_SUMMARY: KindSummary<DestinationOf<'warehouse'>> = {
  target: ({ warehouse }) => warehouse.url,
  targets: ({ warehouse }) => [warehouse.url],
  Icon: null,
  advice: (reason) => reasonAdvice(reason),
  request: null,
  ownsAttempt: ({ load }) => load !== null,
  Attempt: WarehouseAttempt,
  card: {
    to: '/destinations/new?type=warehouse',
    title: 'Warehouse',
    about: 'Writes every message as rows into tables: Parquet files, PostgreSQL or ClickHouse.',
    details: 'needs a folder, a bucket or a database',
    Icon: DestinationIcon,
  },
}

const SHOWN_TABLES = 5

export function WarehouseAttempt({ attempt, withAdvice = true }: AttemptProps) {
  const { reason, load } = attempt
  const advice = withAdvice && reason !== null ? reasonAdvice(reason) : ''
  return (
    <AttemptFrame attempt={attempt} isSent={false} advice={advice} printedBy="integration">
      {load !== null && <LoadView load={load} />}
    </AttemptFrame>
  )
}

function LoadView({ load: { id, tables, rows, bytes: size, durationMs } }: { load: NonNullable<Attempt['load']> }) {
  const shown = tables.slice(0, SHOWN_TABLES).map(({ table, rows: own }) => `${table} (${exactCount(own)})`)
  const more = tables.length - shown.length
  return (
    <>
      <SmallStrong>
        {plural(rows, 'row')} in {plural(tables.length, 'table')}, {size === 0 ? 'loaded before' : bytes(size)}, in {duration(durationMs)}
      </SmallStrong>
      <LongNote>
        Load {id}: {shown.join(', ')}
        {more > 0 && ` and ${plural(more, 'more table')}`}
      </LongNote>
    </>
  )
}
