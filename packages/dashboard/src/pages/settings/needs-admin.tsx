// Explains that an action needs an admin token.

import { Note } from '../../components/styled.tsx'
import { useSession } from '../../session/session.tsx'

export const ADMIN_ONLY = 'Requires an admin token.'

/** Not shown to admins. */
export function NeedsAdmin() {
  const { isAdmin } = useSession()
  if (isAdmin) return null
  return <Note>Read-only. Changes require an admin token.</Note>
}
