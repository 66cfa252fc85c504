// The time range of the dashboard. It is in the page's address, and pages that are opened afterwards begin with it.

import { Button, Group, NativeSelect, Popover, SegmentedControl, Stack, TextInput } from '@mantine/core'
import { useEffect, useState } from 'react'
import { useSession } from '../../session/session.tsx'
import { localTime } from '../../url/local-time.ts'
import { changeSearch, useParam } from '../../url/url-state.ts'
import { entered, Form } from '../inputs.tsx'
import { useIsNarrow } from '../responsive-table.tsx'
import { SmallButton } from '../styled.tsx'
import { customId, defaultPeriod, PERIOD_IDS, PERIODS, type Period, type PeriodId, periodOf } from './periods.ts'

const PARAM = 'period'
/** Of this tab of the browser. A reload begins with what is in the address. */
let chosenLast = ''
/** The default period. It is chosen once per page load, so that it does not change while somebody looks at the page. */
let usual: PeriodId | undefined

export function usePeriod(): Period {
  const { dataSince } = useSession()
  usual ??= defaultPeriod(dataSince === null ? 0 : Date.now() - Date.parse(dataSince))
  const [chosen] = useParam({ param: PARAM })
  useEffect(() => {
    if (chosen === '' && chosenLast !== '') changeSearch({ [PARAM]: chosenLast }, { replace: true })
    else if (chosen !== '') chosenLast = chosen
  }, [chosen])
  return periodOf(chosen || chosenLast, usual)
}

export function choosePeriod(id: string): void {
  chosenLast = id === usual ? '' : id
  changeSearch({ [PARAM]: chosenLast })
}

/** Shows a part of a chart on all charts. */
export function zoomTo(fromMs: number, toMs: number): void {
  choosePeriod(customId(fromMs, toMs))
}

const CUSTOM = 'custom'
const OPTIONS = PERIOD_IDS.map((id) => ({ value: id as string, label: PERIODS[id].short }))

export function PeriodChoice() {
  const period = usePeriod()
  const isNarrow = useIsNarrow()
  const [isOpen, setOpen] = useState(false)
  const value = period.fixed === undefined ? period.id : CUSTOM
  const options = period.fixed === undefined ? OPTIONS : [...OPTIONS, { value: CUSTOM, label: 'Custom' }]
  const text = period.fixed === undefined ? 'Custom' : rangeText(period.fixed)
  const choose = (next: string): void => (next === CUSTOM ? setOpen(true) : choosePeriod(next))
  return (
    <Group gap={6}>
      {isNarrow ? (
        <NativeSelect size="xs" data={options} aria-label="Period" {...entered(value, choose)} />
      ) : (
        <SegmentedControl size="xs" data={options} value={value} onChange={choose} aria-label="Period" />
      )}
      <Popover opened={isOpen} onChange={setOpen} position="bottom-end" trapFocus withinPortal={false}>
        <Popover.Target>
          <SmallButton onClick={() => setOpen(!isOpen)} aria-label={`${text}: choose the start and end of the period`}>
            {text}
          </SmallButton>
        </Popover.Target>
        <Popover.Dropdown>
          <Custom period={period} onDone={() => setOpen(false)} />
        </Popover.Dropdown>
      </Popover>
    </Group>
  )
}

function Custom({ period, onDone }: { period: Period; onDone: () => void }) {
  const { fromMs, toMs } = period.fixed ?? { fromMs: Date.now() - period.lengthMs, toMs: Date.now() }
  const [from, setFrom] = useState(localTime(new Date(fromMs).toISOString()).slice(0, 16))
  const [to, setTo] = useState(localTime(new Date(toMs).toISOString()).slice(0, 16))
  const isValid = Date.parse(to) - Date.parse(from) >= 60_000
  const apply = (): void => {
    if (!isValid) return
    zoomTo(Date.parse(from), Date.parse(to))
    onDone()
  }
  return (
    <Form onSubmit={apply}>
      <Stack gap="xs">
        <TextInput label="From" type="datetime-local" size="xs" {...entered(from, setFrom)} />
        <TextInput
          label="To"
          type="datetime-local"
          size="xs"
          {...entered(to, setTo)}
          error={isValid ? null : 'Must be at least a minute after the start.'}
        />
        <Button type="submit" size="xs">
          Show
        </Button>
      </Stack>
    </Form>
  )
}

const dayAndClock = new Intl.DateTimeFormat(undefined, {
  day: 'numeric',
  month: 'short',
  hour: '2-digit',
  minute: '2-digit',
  hour12: false,
})

function rangeText({ fromMs, toMs }: { fromMs: number; toMs: number }): string {
  return dayAndClock.formatRange(new Date(fromMs), new Date(toMs))
}
