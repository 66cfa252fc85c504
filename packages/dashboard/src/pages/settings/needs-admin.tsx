// Explains that an action needs an admin token.

import { Text } from '@mantine/core'
import { useSession } from '../../session.tsx'

export const ADMIN_ONLY = 'Requires an admin token. Yours has the viewer role.'

/** Shown to viewers only. */
export function NeedsAdmin() {
  const { isAdmin } = useSession()
  if (isAdmin) return null
  return (
    <Text size="sm" c="dimmed">
      Read-only. Changes require an admin token.
    </Text>
  )
}
