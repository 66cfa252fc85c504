// Chooses the period over which messages are counted. It is kept in the page's address.

import { SegmentedControl } from '@mantine/core'
import { useSearchState } from '../../url/url-state.ts'
import { DEFAULT_PERIOD, PERIOD_IDS, PERIODS, type Period, periodOf } from '../overview/periods.ts'

export function usePeriod(): Period {
  const [params] = useSearchState()
  return periodOf(params.get('period'))
}

export function PeriodChoice() {
  const [, change] = useSearchState()
  const period = usePeriod()
  return (
    <SegmentedControl
      aria-label="Period"
      size="xs"
      value={period.id}
      onChange={(id) => change({ period: id === DEFAULT_PERIOD ? null : id })}
      data={PERIOD_IDS.map((id) => ({ value: id, label: PERIODS[id].short }))}
    />
  )
}
