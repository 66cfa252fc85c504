// `switchyard sql`: queries a lake, and shows the rows as a table, or as JSON, CSV or a Parquet file.

import type { JsonObject } from '@switchyard/protocol'
import type { SqlAnswer, SqlColumn, SqlValue } from '@switchyard/warehouse/sql'
import { type Call, type Command, CommandProblem, UsageProblem } from '../line/command.ts'
import { cell } from '../line/listing.ts'
import { optionalId } from '../line/references.ts'
import { parseCount } from '../line/times.ts'

type WriteResult = (path: string, columns: readonly SqlColumn[], rows: readonly (readonly SqlValue[])[]) => Promise<void>

export const sql: Command = {
  name: 'sql',
  summary: 'Query the tables of a Parquet lake with SQL',
  details:
    'Runs one SELECT statement with DuckDB in the service: at most 30 s and 10,000 rows. Each source has a schema and each event a table, such as shop.order_completed; without the schema, the table must be unique. A query is recorded in the audit log.',
  arguments: [{ name: 'QUERY', description: 'One SELECT statement.' }],
  flags: {
    destination: { placeholder: 'DESTINATION', description: 'The lake, by name or id. Not needed if there is only one.' },
    limit: { placeholder: 'NUMBER', description: 'The maximum number of rows.', defaultText: '10000' },
    csv: { placeholder: null, description: 'Print the rows as CSV, with a header.' },
    parquet: { placeholder: 'FILE', description: 'Write the rows to a Parquet file.' },
  },
  examples: [
    'switchyard sql "select event, count(*) from tracks group by 1"',
    'switchyard sql --csv "select * from shop.order_completed where day = \'2026-11-17\'" > orders.csv',
  ],
  run,
}

async function run(call: Call): Promise<void> {
  const { out, json } = call
  const file = call.flag('parquet')
  if ([json, call.has('csv'), file !== undefined].filter(Boolean).length > 1)
    throw new UsageProblem('Use only one of --json, --csv and --parquet.')
  const limit = call.flag('limit')
  const destinationId = await optionalId(call.api, 'destination', call.flag('destination'))
  const { columns, rows, truncated, warnings } = (await call.api.post('/api/sql', {
    query: call.arguments[0],
    ...(limit === undefined ? {} : { limit: parseCount('limit', limit) }),
    ...(destinationId === undefined ? {} : { destinationId }),
  })) as JsonObject & SqlAnswer
  if (json) out.json({ columns, rows, truncated, warnings })
  else if (call.has('csv')) out.text(csvOf(columns, rows))
  else if (file !== undefined) {
    await (await loadWriter(call))(file, columns, rows)
    out.line(`${rows.length} rows written to ${file}.`)
  } else if (rows.length === 0) out.remark('No rows.')
  else
    out.table(
      columns.map(({ name }) => name),
      rows.map((row) => row.map((value) => (value === null ? 'NULL' : cell(value)))),
    )
  for (const warning of warnings) out.remark(warning)
  if (truncated && !json) out.remark(`There are more rows; these are the first ${rows.length}.`)
}

/** Fields as RFC 4180 describes them. */
function csvOf(columns: readonly SqlColumn[], rows: readonly (readonly SqlValue[])[]): string {
  const field = (value: SqlValue): string => {
    const text = value === null ? '' : typeof value === 'string' ? value : JSON.stringify(value)
    return /[",\r\n]/.test(text) || text !== text.trim() ? `"${text.replaceAll('"', '""')}"` : text
  }
  return [columns.map(({ name }) => name), ...rows].map((row) => row.map(field).join(',')).join('\n')
}

async function loadWriter(call: Call): Promise<WriteResult> {
  const [{ findPackage, loadPart, WAREHOUSE, warehouseFolder }, { localConfig }] = await Promise.all([
    import('../../installation/integrations-package.ts'),
    import('../installation/local-installation.ts'),
  ])
  const url = findPackage(WAREHOUSE, warehouseFolder(localConfig(call)))
  if (url === null)
    throw new CommandProblem(
      'Parquet files are written with the warehouse package, which is not installed on this machine. Run `switchyard warehouse install`, or use --csv.',
    )
  return (await loadPart<{ writeResult: WriteResult }>(url, './result-file')).writeResult
}
