// Chooses the period over which messages are counted. It is kept in the page's address.

import { ParamSegments } from '../../components/inputs.tsx'
import { useSearchState } from '../../url/url-state.ts'
import { DEFAULT_PERIOD, PERIOD_IDS, PERIODS, type Period, periodOf } from './periods.ts'

export function usePeriod(): Period {
  const [params] = useSearchState()
  return periodOf(params.get('period'))
}

const OPTIONS = PERIOD_IDS.map((id) => ({ value: id, label: PERIODS[id].short }))

export function PeriodChoice() {
  return <ParamSegments param="period" fallback={DEFAULT_PERIOD} options={OPTIONS} aria-label="Period" size="xs" />
}
