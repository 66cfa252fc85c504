// The store as seen by a caller that is limited to sources: what is out of scope does not exist. The compiler requires every member of the port, so
// each new one has to be decided on. Members that the control API does not use are out of reach.

import type { Store } from '../../store/store.ts'
import { limitedBooks } from './limited-books.ts'
import { limitedHistory } from './limited-history.ts'
import { limitedResources } from './limited-resources.ts'
import { limitedDeletions, limitedDocuments, limitedOrder, limitedQuarantine, limitedReplays } from './limited-topics.ts'
import { outOfReach, unreachable } from './out-of-reach.ts'
import type { Scope } from './scope.ts'

export function limitedStore(store: Store, scope: Scope): Store {
  const history = limitedHistory(store.history, scope)
  return {
    configuration: () => scope.limit(store.configuration()),
    onConfiguration: unreachable('changes of the configuration'),
    get ingest() {
      return outOfReach('accepting messages')
    },
    get delivery() {
      return outOfReach('claiming and settling')
    },
    resources: limitedResources(store, scope),
    history,
    books: limitedBooks(store, scope),
    quarantine: limitedQuarantine(store, scope),
    order: limitedOrder(store, scope),
    replays: limitedReplays(store, history, scope),
    deletions: limitedDeletions(store, scope),
    documents: limitedDocuments(store, scope),
    get oauth() {
      return outOfReach('OAuth')
    },
    get secrets() {
      return outOfReach('secrets')
    },
    ...(store.nodes && { nodes: store.nodes }),
    check: unreachable('the check of the store'),
    dropExpired: unreachable('dropping old data'),
    close: unreachable('closing the store'),
  }
}
