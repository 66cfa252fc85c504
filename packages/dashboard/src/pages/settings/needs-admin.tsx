// Why something cannot be done here.

import { Text } from '@mantine/core'
import { useSession } from '../../session.tsx'

export const ADMIN_ONLY = 'Needs a token with the role admin; yours is a viewer’s.'

/** Says so to viewers, and nothing to admins. */
export function NeedsAdmin() {
  const { isAdmin } = useSession()
  if (isAdmin) return null
  return (
    <Text size="sm" c="dimmed">
      You may look, not change. {ADMIN_ONLY}
    </Text>
  )
}
