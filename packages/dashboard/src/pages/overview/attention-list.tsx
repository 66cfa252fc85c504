// The findings that need attention, each with its start time and a link to its cause. Says that nothing needs attention only after every check.

import { Anchor, Badge, Box, Button, Group, Paper, Stack, Text, ThemeIcon, Tooltip } from '@mantine/core'
import { Link } from 'wouter'
import type { ApiProblem } from '../../api/client.ts'
import { CheckIcon } from '../../components/icons.tsx'
import { ErrorAlert, Loading } from '../../components/page.tsx'
import { LongText, Note, SectionTitle, SmallNote, SmallTag, Strong, Time } from '../../components/styled.tsx'
import { useRunnable } from '../../session/session.tsx'
import { dateTime, duration, withUnbrokenUnits } from '../../text/format.ts'
import { changeSearch } from '../../url/url-state.ts'
import type { Finding, Severity } from './attention.ts'

const SHOWN = 6
const LOOKS: Readonly<Record<Severity, { color: string; word: string }>> = {
  critical: { color: 'red', word: 'Critical' },
  warning: { color: 'orange', word: 'Warning' },
  notice: { color: 'blue', word: 'Info' },
}

interface AttentionProps {
  findings: Finding[] | undefined
  isComplete: boolean
  failed: { error: ApiProblem | null } | undefined
  retry: () => void
  isNew: boolean
  isAll: boolean
}

export function Attention({ findings, isComplete, failed, retry, isNew, isAll }: AttentionProps) {
  const shown = isAll ? findings : findings?.slice(0, SHOWN)
  const hidden = (findings?.length ?? 0) - (shown?.length ?? 0)
  const isHealthy = findings?.length === 0 && isComplete
  // A new installation shows the first steps instead.
  if (isHealthy && isNew) return null
  return (
    <Stack component="section" gap="xs" aria-labelledby="attention">
      <Group gap="xs">
        <SectionTitle id="attention">Needs attention</SectionTitle>
        {findings !== undefined && findings.length > 0 && (
          <Badge color={LOOKS[findings[0]?.severity ?? 'notice'].color} variant="light" aria-label={`${findings.length} findings`}>
            {findings.length}
          </Badge>
        )}
      </Group>
      {failed?.error && <ErrorAlert problem={failed.error} onRetry={retry} />}
      {isHealthy && (
        <Paper withBorder p="md" role="status">
          <Group gap="sm" wrap="nowrap">
            <ThemeIcon color="teal" variant="light" radius="xl">
              <CheckIcon size={16} />
            </ThemeIcon>
            <div>
              <Text fw={600}>Nothing needs attention</Text>
              <Note>
                No circuit breaker is open, no delivery is pending for more than 5 minutes, failures and rejections are not rising, and the
                ledger balances.
              </Note>
            </div>
          </Group>
        </Paper>
      )}
      {shown !== undefined && shown.length > 0 && (
        <Paper withBorder component="ul" p={0} m={0} style={{ listStyle: 'none', overflow: 'hidden' }}>
          {shown.map((finding, at) => (
            <Item key={finding.id} finding={finding} isFirst={at === 0} />
          ))}
        </Paper>
      )}
      {hidden > 0 && (
        <Button variant="subtle" size="xs" style={{ alignSelf: 'flex-start' }} onClick={() => changeSearch({ findings: 'all' })}>
          Show {hidden} more
        </Button>
      )}
      {isAll && (findings?.length ?? 0) > SHOWN && (
        <Button variant="subtle" size="xs" style={{ alignSelf: 'flex-start' }} onClick={() => changeSearch({ findings: null })}>
          Show fewer
        </Button>
      )}
      {!isComplete && !failed && (findings === undefined || findings.length === 0) && (
        <Loading lines={2} label="Checking what needs attention" />
      )}
    </Stack>
  )
}

interface ItemProps {
  finding: Finding
  isFirst: boolean
}

function Item({ finding: { severity, subject, text, since, isRough = false, href, link }, isFirst }: ItemProps) {
  const runnable = useRunnable()
  const { color, word } = LOOKS[severity]
  return (
    <Box
      component="li"
      p="sm"
      style={{
        borderTop: isFirst ? undefined : '1px solid var(--mantine-color-default-border)',
        borderInlineStart: `4px solid var(--mantine-color-${color}-filled)`,
      }}
    >
      <Group justify="space-between" align="flex-start" gap="xs">
        <Stack gap={2} miw={0} style={{ flex: '1 1 260px' }}>
          <Group gap="xs">
            <SmallTag color={color} style={{ flexShrink: 0 }}>
              {word}
            </SmallTag>
            <Strong style={{ overflowWrap: 'anywhere' }}>{subject}</Strong>
          </Group>
          <LongText>{withUnbrokenUnits(runnable(text))}</LongText>
        </Stack>
        <Group gap="md">
          {since !== null && <SmallNote>Started {isRough ? <Rough at={since} /> : <Time at={since} relative size="xs" />}</SmallNote>}
          {/* The browser scrolls to an anchor on this page; the router opens other pages. */}
          <Anchor {...(href.startsWith('#') ? {} : { component: Link })} href={href} size="sm" fw={600} aria-label={`${link}: ${subject}`}>
            {link} →
          </Anchor>
        </Group>
      </Group>
    </Box>
  )
}

/** A time that is known to a few minutes only, because counts are per time step. */
function Rough({ at }: { at: string }) {
  const minutes = Math.max(1, Math.floor((Date.now() - Date.parse(at)) / 60_000))
  return (
    <Tooltip label={`In the minutes after ${dateTime(at)}`} events={{ hover: true, focus: true, touch: true }}>
      <Text component="time" dateTime={at} span size="xs" tabIndex={0}>
        about {duration(minutes * 60_000)} ago
      </Text>
    </Tooltip>
  )
}
