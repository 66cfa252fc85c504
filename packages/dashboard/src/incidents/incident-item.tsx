// An incident in a list: how severe it is, what it is about, the cause first, its numbers and how they changed, and what can be done.

import { Anchor, Box, Group, Stack, Text } from '@mantine/core'
import { Link, useLocation } from 'wouter'
import { Sparkline } from '../components/sparkline.tsx'
import { LongStrong, LongText, SmallNote, SmallTag, Time, ViewLink } from '../components/styled.tsx'
import { useRunnable } from '../session/session.tsx'
import { exactCount, withUnbrokenUnits } from '../text/format.ts'
import { IncidentActions } from './incident-actions.tsx'
import { causeLinks, causeLinkText, hasCount, type Incident, SEVERITY_LOOKS } from './incident-text.ts'
import { useCause } from './use-cause.ts'

export function incidentPath({ id }: Pick<Incident, 'id'>): string {
  return `/alerts/${encodeURIComponent(id)}`
}

interface IncidentItemProps {
  incident: Incident
  isFirst: boolean
  /** Because it is written right above. */
  hidesCause?: boolean
}

export function IncidentItem({ incident, isFirst, hidesCause = false }: IncidentItemProps) {
  const runnable = useRunnable()
  const { severity, subject, event, state, since, message, measure, acknowledged, muted } = incident
  const { color, word } = SEVERITY_LOOKS[severity]
  const [location] = useLocation()
  const [inFull, response] = useCause(incident, { isHidden: hidesCause })
  return (
    <Box
      component="li"
      p="sm"
      style={{
        borderTop: isFirst ? undefined : '1px solid var(--mantine-color-default-border)',
        borderInlineStart: `4px solid var(--mantine-color-${color}-filled)`,
        opacity: acknowledged === null ? undefined : 0.85,
      }}
    >
      <Stack gap={6}>
        <Group justify="space-between" align="flex-start" gap="sm">
          <Stack gap={2} miw={0} style={{ flex: '1 1 260px' }}>
            <Group gap="xs">
              <SmallTag color={color} style={{ flexShrink: 0 }}>
                {word}
              </SmallTag>
              <ViewLink to={incidentPath(incident)} fw={600} style={{ overflowWrap: 'anywhere' }}>
                {event}: {subject.name}
              </ViewLink>
              {state === 'starting' && <SmallTag color="gray">just begun</SmallTag>}
              {muted && <SmallTag color="gray">muted</SmallTag>}
            </Group>
            {inFull !== undefined && <LongStrong>{withUnbrokenUnits(runnable(inFull))}</LongStrong>}
            {response !== undefined && <LongText>{response}</LongText>}
            <LongText>{withUnbrokenUnits(runnable(message))}</LongText>
            {acknowledged !== null && (
              <SmallNote style={{ overflowWrap: 'anywhere' }}>
                {acknowledged.name} takes care of it, <Time at={acknowledged.at} relative="with clock" size="xs" />
                {acknowledged.note === null ? '' : `: ${acknowledged.note}`}
              </SmallNote>
            )}
          </Stack>
          <Group gap="md" wrap="nowrap">
            {measure !== null && hasCount(incident) && <Measure measure={measure} color={color} />}
            <SmallNote>
              Began <Time at={since} relative="with clock" size="xs" />
            </SmallNote>
          </Group>
        </Group>
        <Group gap="xs">
          <IncidentActions incident={incident}>
            {/* No link to the page that is shown already. The browser scrolls to an anchor on this page; the router opens other pages. */}
            {causeLinks(incident)
              .filter((link) => link !== location)
              .map((link) => (
                <Anchor
                  key={link}
                  {...(link.includes('#') ? {} : { component: Link })}
                  href={link}
                  size="sm"
                  fw={600}
                  aria-label={`${causeLinkText(link)}: ${subject.name}`}
                >
                  {causeLinkText(link)} →
                </Anchor>
              ))}
          </IncidentActions>
        </Group>
      </Stack>
    </Box>
  )
}

function Measure({ measure: { label, value, readings }, color }: { measure: NonNullable<Incident['measure']>; color: string }) {
  return (
    <Stack gap={0} align="flex-end" maw={170}>
      <Group gap={6} wrap="nowrap">
        {readings.length > 2 && <Sparkline values={readings.map((reading) => reading.value)} color={color} width={64} height={20} />}
        <Text fw={700} size="sm">
          {exactCount(value ?? 0)}
        </Text>
      </Group>
      <SmallNote ta="right">{label}</SmallNote>
    </Stack>
  )
}
