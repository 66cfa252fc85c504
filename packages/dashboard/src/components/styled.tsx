// Text, links, times, labels and buttons in the styles that pages share. A page that needs another style uses Mantine's component.

import { Anchor, type AnchorProps, Badge, Button, type ButtonProps, Code, Text, type TextProps, Title, Tooltip } from '@mantine/core'
import { type ReactNode, useEffect, useState } from 'react'
import { Link } from 'wouter'
import { ago, clockTime, dateTime, duration, preciseTime } from '../text/format.ts'
import { type DeliveryState, STATE_COLORS } from './theme.ts'

/** Explains what is beside it. */
export const Note = Text.withProps({ size: 'sm', c: 'dimmed' })
export const SmallNote = Text.withProps({ size: 'xs', c: 'dimmed' })
/** May contain a long word, such as an id, which is broken rather than wider than the page. */
const LONG = { overflowWrap: 'anywhere' } as const
export const LongText = Text.withProps({ size: 'sm', style: LONG })
export const LongNote = Text.withProps({ size: 'sm', c: 'dimmed', style: LONG })
export const LongStrong = Text.withProps({ size: 'sm', fw: 600, style: LONG })
export const LongCode = Code.withProps({ style: LONG })
/** The title of something small, such as a card. */
export const Strong = Text.withProps({ size: 'sm', fw: 600 })
export const SmallStrong = Text.withProps({ size: 'xs', fw: 600 })
/** The title of a part of a page. */
export const SectionTitle = Title.withProps({ order: 2, size: 'h4' })

export const SmallTitle = Title.withProps({ order: 3, size: 'h5' })

/** A state or another word about something. */
export const Tag = Badge.withProps({ variant: 'light', tt: 'none' })
export const SmallTag = Badge.withProps({ variant: 'light', tt: 'none', size: 'sm' })

export const SecondaryButton = Button.withProps({ variant: 'default' })
export const SmallButton = Button.withProps({ variant: 'default', size: 'xs' })
/** For what cannot be undone. */
export const DangerButton = Button.withProps({ variant: 'light', color: 'red' })
/** In a row of a table or a list. */
export const RowButton = Button.withProps({ variant: 'default', size: 'compact-sm' })

interface ExplainedButtonProps extends ButtonProps {
  /** What the button does, in full. */
  name: string
  /** Why that is not possible; null if it is. */
  why: string | null
  onClick: () => void
  children: ReactNode
}

/** A button that says why it is disabled. Not by the disabled attribute: it must be focusable to show why. */
export function ExplainedButton({ name, why, onClick, ...props }: ExplainedButtonProps) {
  return (
    <Tooltip label={why ?? ''} disabled={why === null} multiline maw={300} events={{ hover: true, focus: true, touch: true }}>
      <Button
        {...props}
        data-disabled={why !== null}
        aria-disabled={why !== null}
        aria-label={why === null ? name : `${name}. Not possible: ${why}`}
        onClick={(event) => (why === null ? onClick() : event.preventDefault())}
      />
    </Tooltip>
  )
}

/** A button that leads to another page. */
export function LinkButton({ to, ...props }: ButtonProps & { to: string; onClick?: () => void; children: ReactNode }) {
  return <Button component={Link} href={to} variant="default" {...props} />
}

export function ViewLink({ to, children, ...rest }: { to: string; children: ReactNode } & AnchorProps) {
  return (
    <Anchor component={Link} href={to} size="sm" underline="always" {...rest}>
      {children}
    </Anchor>
  )
}

/** In an alert: the usual colour of links has too little contrast there. */
export function AlertLink(props: Parameters<typeof ViewLink>[0]) {
  return <ViewLink c="inherit" {...props} />
}

/** The name of a thing in a list of things, which leads to its page. */
export function NameLink({ to, children, ...rest }: { to: string; children: ReactNode } & AnchorProps) {
  return (
    <Anchor component={Link} href={to} fw={600} style={LONG} {...rest}>
      {children}
    </Anchor>
  )
}

export function StateBadge({ state, size = 'sm' }: { state: DeliveryState; size?: string }) {
  return (
    <Tag color={STATE_COLORS[state]} size={size} style={{ flexShrink: 0 }}>
      {state}
    </Tag>
  )
}

interface TimeProps {
  at: string | null | undefined
  /** `with clock`: the time of day, and how long ago that was. */
  relative?: boolean | 'with clock'
  precise?: boolean
  size?: string
}

/** With `precise`, shows milliseconds. */
export function Time({ at, relative = false, precise = false, size = 'sm' }: TimeProps) {
  if (at === null || at === undefined)
    return (
      <Text span size={size} c="dimmed">
        –
      </Text>
    )
  return (
    <Instant
      at={at}
      size={size}
      text={relative === 'with clock' ? `${clockTime(at)} (${ago(at)})` : relative ? ago(at) : precise ? preciseTime(at) : dateTime(at)}
    />
  )
}

/** A text about a time, with the time itself in a tooltip. */
function Instant({ at, text, ...props }: { at: string; text: string } & TextProps) {
  return (
    <Tooltip
      label={`${dateTime(at)} · ${new Date(at).toISOString().replace('T', ' ').replace('Z', ' UTC')}`}
      events={{ hover: true, focus: true, touch: true }}
    >
      <Text component="time" dateTime={at} span tabIndex={0} style={{ whiteSpace: 'nowrap' }} {...props}>
        {text}
      </Text>
    </Tooltip>
  )
}

/** Says when a pending delivery expires: `expires in 23 h` after the prefix. Renders nothing if it does not expire, or if the time is not known. */
export function Expiry({ at, prefix = '', size = 'sm' }: { at: string | null; prefix?: string; size?: string }) {
  const nowMs = useNow(10_000)
  if (at === null) return null
  const leftMs = Date.parse(at) - nowMs
  return (
    <Instant
      at={at}
      size={size}
      text={`${prefix}${leftMs <= 0 ? 'expires if the next attempt fails' : `expires in ${duration(leftMs)}`}`}
      fw="inherit"
    />
  )
}

/** The current time, updated every second by default. */
export function useNow(everyMs = 1_000): number {
  const [nowMs, setNow] = useState(() => Date.now())
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), everyMs)
    return () => clearInterval(timer)
  }, [everyMs])
  return nowMs
}

/** `in 12 s` after the prefix, or `due now` when the time has passed. Null means due now. */
export function Countdown({ at, size = 'sm', prefix = '' }: { at: string | null; size?: string; prefix?: string }) {
  const nowMs = useNow()
  if (at === null)
    return (
      <Text span size={size}>
        due now
      </Text>
    )
  const leftMs = Date.parse(at) - nowMs
  const text = leftMs <= 0 ? 'due now' : `${prefix}in ${duration(Math.ceil(leftMs / 1_000) * 1_000)}`
  return <Instant at={at} size={size} text={text} fw="inherit" />
}
