// What deletion requests are asked by, inside an adapter: the port's filter, with the user's pseudonym beside the id.

import type { DeletionState } from '../store.ts'

/** A user by either name, as requests that ended long ago know only the second. */
export interface NamedUser {
  userId: string
  pseudonym: string
}

export interface DeletionQuestion {
  state?: DeletionState | undefined
  user?: NamedUser | undefined
}
