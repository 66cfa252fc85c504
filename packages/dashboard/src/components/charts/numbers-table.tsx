// The numbers of a chart as a table, newest first.

import { ScrollArea, Table } from '@mantine/core'
import { type ChartSeries, slotText, valueText } from './chart-text.ts'

interface NumbersTableProps {
  slots: readonly { at: string; until: string }[]
  series: readonly ChartSeries[]
  format: (value: number) => string
  label: string
}

export function NumbersTable({ slots, series, format, label }: NumbersTableProps) {
  const rows = slots.map((slot, at) => ({ slot, at })).toReversed()
  return (
    <ScrollArea.Autosize mah={320} type="auto" viewportProps={{ tabIndex: 0, role: 'region', 'aria-label': `${label}, newest first` }}>
      <Table stickyHeader striped style={{ fontVariantNumeric: 'tabular-nums' }}>
        <Table.Thead>
          <Table.Tr>
            <Table.Th scope="col">Time</Table.Th>
            {series.map((each) => (
              <Table.Th key={each.label} scope="col" ta="right">
                {each.label}
              </Table.Th>
            ))}
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {rows.map(({ slot, at }) => (
            <Table.Tr key={slot.at}>
              <Table.Th scope="row" fw={400} style={{ whiteSpace: 'nowrap' }}>
                {slotText(slot)}
              </Table.Th>
              {series.map(({ label: name, values }) => (
                <Table.Td key={name} ta="right" {...(values[at] ? {} : { c: 'dimmed' })}>
                  {valueText(values[at] ?? null, format)}
                </Table.Td>
              ))}
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </ScrollArea.Autosize>
  )
}
