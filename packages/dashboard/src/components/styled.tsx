// Text, labels and buttons in the styles that pages share. A page that needs another style uses Mantine's component.

import { Badge, Button, type ButtonProps, Text, Title } from '@mantine/core'
import type { ReactNode } from 'react'
import { Link } from 'wouter'

/** Explains what is beside it. */
export const Note = Text.withProps({ size: 'sm', c: 'dimmed' })
export const SmallNote = Text.withProps({ size: 'xs', c: 'dimmed' })
/** The title of something small, such as a card. */
export const Strong = Text.withProps({ size: 'sm', fw: 600 })
/** The title of a part of a page. */
export const SectionTitle = Title.withProps({ order: 2, size: 'h4' })

/** A state or another word about something. */
export const Tag = Badge.withProps({ variant: 'light', tt: 'none' })
export const SmallTag = Badge.withProps({ variant: 'light', tt: 'none', size: 'sm' })

export const SecondaryButton = Button.withProps({ variant: 'default' })
export const SmallButton = Button.withProps({ variant: 'default', size: 'xs' })
/** In a row of a table or a list. */
export const RowButton = Button.withProps({ variant: 'default', size: 'compact-sm' })

/** A button that leads to another page. */
export function LinkButton({ to, ...props }: ButtonProps & { to: string; children: ReactNode }) {
  return <Button component={Link} href={to} variant="default" {...props} />
}
