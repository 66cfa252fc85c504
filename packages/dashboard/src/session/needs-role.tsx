// Says which role an action needs, where somebody would look for it.

import { Note } from '../components/styled.tsx'
import { useSession } from './session.tsx'

export const ADMIN_ONLY = 'Requires the admin role.'
export const EDITOR_ONLY = 'Requires the editor or admin role.'
/** About a destination. */
export const SHARED = 'Read-only: it also serves sources that you have no access to'
export const ALL_SOURCES_ONLY = 'Requires access to all sources.'

/** Not shown to admins. */
export function NeedsAdmin() {
  const { isAdmin } = useSession()
  if (isAdmin) return null
  return <Note>Read-only. Changes require the admin role.</Note>
}
