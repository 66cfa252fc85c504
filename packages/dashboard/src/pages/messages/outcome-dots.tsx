// The outcomes of a message in the list: a dot for each destination, and the worst outcome in words. A dot has a colour and a sign.

import { VisuallyHidden } from '@mantine/core'
import { STATE_COLORS } from '../../components/theme.ts'
import { type Outcome, outcomeSentence, outcomeText } from './message-row.ts'
import classes from './messages.module.css'

const MAX_DOTS = 8
const SIGNS = { pending: '…', delivered: '✓', failed: '✕', expired: '✕', cancelled: '–' } as const

export function OutcomeDots({ outcomes, skipped }: { outcomes: readonly Outcome[]; skipped: number }) {
  const others = outcomes.length - MAX_DOTS
  const text = outcomeText(outcomes)
  return (
    <span title={outcomes.map(outcomeSentence).join('\n')}>
      <span className={classes['dots']} aria-hidden="true">
        {outcomes.slice(0, MAX_DOTS).map(({ destinationId, state }) => {
          const colour = state === null ? 'gray' : STATE_COLORS[state]
          return (
            <span
              key={destinationId}
              className={classes['dot']}
              data-state={state ?? 'unknown'}
              style={{ background: `var(--mantine-color-${colour}-light)`, color: `var(--mantine-color-${colour}-light-color)` }}
            >
              {state === null ? '?' : SIGNS[state]}
            </span>
          )
        })}
        {others > 0 && `+${others}`}
      </span>
      {text}
      {skipped > 0 && `, ${skipped} skipped`}
      {outcomes.length > 1 && <VisuallyHidden>{`. ${outcomes.map(outcomeSentence).join('; ')}`}</VisuallyHidden>}
    </span>
  )
}
