// One attempt of a delivery or of a test: the URL, the status or the error, how long it took, the start of the response body, and what was printed.
// The kinds of destinations say what differs between them (kinds/*/summary.tsx).

import { Box, Group, Stack } from '@mantine/core'
import type { ReactNode } from 'react'
import type { Schemas } from '../api/client.ts'
import { isReused, PHASE_LABELS, type PhaseName, phasesOf, type Timings } from '../text/attempt-phases.ts'
import { duration, preciseTime } from '../text/format.ts'
import { reasonSentence } from '../text/reasons.ts'
import { CodeBlock } from './copyable.tsx'
import { LongCode, LongText, Note, SmallNote, SmallStrong, SmallTag } from './styled.tsx'

export interface AttemptFrameProps {
  attempt: Schemas['Attempt']
  /** Whether a request was made. */
  isSent: boolean
  /** What the attempt was for, beside the URL. */
  subject?: string | null
  /** What to do about a failure; empty for nothing. */
  advice: string
  /** How long it took, if a request was made; or else why none was. */
  children: ReactNode
  /** Who printed the log. */
  printedBy: string
}

export function AttemptFrame({ attempt, isSent, subject = null, advice, children, printedBy }: AttemptFrameProps) {
  const { url, address, startedAt, status, reason, error, responseStart, version, logs, method, request } = attempt
  return (
    <Stack gap={6}>
      <Group gap="xs" style={{ rowGap: 4 }}>
        <SmallTag color={reason === null ? 'teal' : 'red'} style={{ flexShrink: 0 }}>
          {reason === null ? (status === null ? 'success' : `HTTP ${status}`) : reason}
        </SmallTag>
        {subject !== null && <LongText fw={500}>{subject}</LongText>}
        {isSent && (
          <LongCode>
            {method !== null && `${method} `}
            {url}
          </LongCode>
        )}
        {(version > 1 || !isSent) && <SmallNote>version {version}</SmallNote>}
        {address !== null && <SmallNote>at {address}</SmallNote>}
      </Group>
      {reason !== null && (
        <LongText>
          {error ?? reasonSentence(reason)}
          {advice !== '' && <Note span> {advice}</Note>}
        </LongText>
      )}
      {children}
      {request !== undefined && (
        <Recorded title="Body of the request" text={request.body} label={`body of the request to ${url}`} maxHeight={240} />
      )}
      {responseStart === '' && <SmallNote>The response had no body.</SmallNote>}
      {responseStart !== null && responseStart !== '' && (
        <Recorded
          title="Start of the response"
          text={responseStart}
          label={`start of the response to the attempt at ${preciseTime(startedAt)} to ${url}`}
        />
      )}
      {logs !== null && (
        <Recorded title={`Log of the ${printedBy}`} text={logs} label={`log of the attempt at ${preciseTime(startedAt)}`} />
      )}
    </Stack>
  )
}

function Recorded({ title, text, label, maxHeight = 160 }: { title: string; text: string; label: string; maxHeight?: number }) {
  return (
    <Stack gap={2}>
      <SmallNote>{title}</SmallNote>
      <CodeBlock text={text} label={label} maxHeight={maxHeight} />
    </Stack>
  )
}

const COLORS: Readonly<Record<PhaseName, string>> = {
  dns: 'grape',
  connect: 'orange',
  tls: 'yellow',
  wait: 'blue',
  answer: 'teal',
  lost: 'red',
}

const colorOf = (name: PhaseName): string => `var(--mantine-color-${COLORS[name]}-5)`

/** `scaleMs`: the time that the full width represents, to compare several attempts. The default is the total of this attempt. */
export function Waterfall({ timings, scaleMs }: { timings: Timings; scaleMs?: number }) {
  const phases = phasesOf(timings)
  const wholeMs = Math.max(scaleMs ?? timings.totalMs, Number.MIN_VALUE)
  return (
    <Box>
      <Box
        pos="relative"
        h={10}
        bg="var(--mantine-color-default-hover)"
        style={{ borderRadius: 3, overflow: 'hidden' }}
        aria-hidden="true"
        data-waterfall
      >
        {phases.map(({ name, startMs, ms }) => (
          <Box
            key={name}
            pos="absolute"
            top={0}
            h="100%"
            bg={colorOf(name)}
            style={{ left: `${(startMs / wholeMs) * 100}%`, width: `max(1px, ${(ms / wholeMs) * 100}%)` }}
          />
        ))}
      </Box>
      <Group gap="xs" mt={4} style={{ rowGap: 2 }}>
        {phases.map(({ name, ms }) => (
          <Group key={name} gap={4} wrap="nowrap">
            <Box w={8} h={8} bg={colorOf(name)} style={{ borderRadius: 2, flexShrink: 0 }} aria-hidden="true" />
            <SmallNote>
              {PHASE_LABELS[name]} {duration(ms)}
            </SmallNote>
          </Group>
        ))}
        <SmallStrong>total {duration(timings.totalMs)}</SmallStrong>
        {isReused(timings) && <SmallNote>reused connection</SmallNote>}
      </Group>
    </Box>
  )
}
