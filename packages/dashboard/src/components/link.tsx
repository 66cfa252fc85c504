// A link to another view of the page. Underlined, because within a sentence a colour alone does not tell it from the rest.

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
