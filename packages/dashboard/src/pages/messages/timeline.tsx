// The timeline of a message: the API's sentences, each attempt with its phases and response, and a countdown to the next attempt.

import { Button, Stack, Text, Timeline } from '@mantine/core'
import type { ReactElement } from 'react'
import { Countdown, Expiry, Note, SmallNote, Time, ViewLink } from '../../components/styled.tsx'
import { STATE_COLORS } from '../../components/theme.ts'
import { AttemptView } from '../../kinds/kinds.tsx'
import { changeSearch, useSearchState } from '../../url/url-state.ts'
import { collapsed, grouped, type MessageStory, type TimelineEntry, timelineEntries } from './story.ts'

const COLORS: Readonly<Record<TimelineEntry['what'], string>> = {
  ...STATE_COLORS,
  received: 'blue',
  duplicate: 'gray',
  owed: 'blue',
  skipped: 'gray',
  quarantined: 'orange',
  released: 'blue',
  attempted: 'gray',
  deleted: 'gray',
  waiting: 'blue',
}

/** The character on the bullet; the sentence has the same meaning. */
const SIGNS: Readonly<Record<TimelineEntry['what'], string>> = {
  received: '↓',
  duplicate: '=',
  owed: '→',
  skipped: '–',
  quarantined: '!',
  released: '→',
  attempted: '↗',
  delivered: '✓',
  failed: '✕',
  expired: '✕',
  cancelled: '–',
  deleted: '–',
  waiting: '…',
}

interface StoryTimelineProps {
  story: MessageStory['story']
  deliveries: MessageStory['deliveries']
  routing?: string
}

export function StoryTimeline({ story, deliveries, routing }: StoryTimelineProps) {
  const [params] = useSearchState()
  const isExpanded = params.get('all') === 'yes'
  const all = grouped(timelineEntries(story, deliveries))
  const rows = isExpanded ? all : collapsed(all)
  // Advice about a failure is shown only for the last attempt of each delivery.
  const lastAttempts = new Set(deliveries.map(({ attempts }) => attempts.at(-1)))
  return (
    <Timeline bulletSize={22} lineWidth={2} active={rows.length} role="list" aria-label="Timeline, oldest first">
      {rows.map((row, at) =>
        row.kind === 'collapsed' ? (
          <Timeline.Item key={`collapsed-${at}`} role="listitem" color="gray" lineVariant="dashed">
            <Button variant="subtle" size="compact-sm" onClick={() => changeSearch({ all: 'yes' }, { replace: true })}>
              Show {row.count} more attempts
            </Button>
          </Timeline.Item>
        ) : (
          item(row.entry, at, {
            also: row.also,
            withAdvice: lastAttempts.has(row.entry.attempt ?? undefined),
            extra: row.entry.what === 'received' ? routing : undefined,
          })
        ),
      )}
    </Timeline>
  )
}

/** An element rather than a component, because the timeline passes props to its items by cloning them. */
function item(
  entry: TimelineEntry,
  key: number,
  { also, withAdvice, extra }: { also: readonly TimelineEntry[]; withAdvice: boolean; extra: string | undefined },
): ReactElement {
  const { what, at, attempt, dueAt, expiresAt } = entry
  const color = what === 'attempted' && attempt !== null ? (attempt.reason === null ? 'teal' : 'red') : COLORS[what]
  return (
    <Timeline.Item
      key={key}
      role="listitem"
      color={color}
      lineVariant={what === 'waiting' ? 'dashed' : 'solid'}
      bullet={<span aria-hidden="true">{SIGNS[what]}</span>}
      data-what={what}
    >
      <Stack gap={4} miw={0}>
        <SmallNote component="div">
          {dueAt !== undefined ? (
            <>
              {dueAt !== null && (
                <>
                  <Time at={dueAt} precise size="xs" />
                  {', '}
                </>
              )}
              <Countdown at={dueAt} size="xs" />
              {expiresAt != null && (
                <>
                  {', '}
                  <Expiry at={expiresAt} size="xs" />
                </>
              )}
            </>
          ) : at === null ? (
            'now'
          ) : (
            <Time at={at} precise size="xs" />
          )}
        </SmallNote>
        {[entry, ...also].map((each, at) => (
          <Text key={at} size="sm" fw={what === 'attempted' ? 400 : 500} style={{ overflowWrap: 'anywhere' }}>
            {each.sentence}
            {what === 'owed' && each.deliveryId !== null && (
              <>
                {' '}
                <ViewLink to={`/deliveries/${encodeURIComponent(each.deliveryId)}`} size="xs" fw={400}>
                  Delivery {each.deliveryId}
                </ViewLink>
              </>
            )}
          </Text>
        ))}
        {extra !== undefined && <Note>{extra}</Note>}
        {attempt !== null && <AttemptView attempt={attempt} withAdvice={withAdvice} />}
      </Stack>
    </Timeline.Item>
  )
}
