// Explains that an action needs an admin token.

import { Text } from '@mantine/core'
import { useSession } from '../../session.tsx'

export const ADMIN_ONLY = 'Requires a token with the role admin. Yours has the role viewer.'

/** Shown to viewers only. */
export function NeedsAdmin() {
  const { isAdmin } = useSession()
  if (isAdmin) return null
  return (
    <Text size="sm" c="dimmed">
      Read-only. Changes require a token with the role admin.
    </Text>
  )
}
