// A link to another page of the dashboard. Underlined, because colour alone does not distinguish a link within a sentence.

import { Anchor, type AnchorProps } from '@mantine/core'
import type { ReactNode } from 'react'
import { Link } from 'wouter'

export function ViewLink({ to, children, ...rest }: { to: string; children: ReactNode } & AnchorProps) {
  return (
    <Anchor component={Link} href={to} size="sm" underline="always" {...rest}>
      {children}
    </Anchor>
  )
}
