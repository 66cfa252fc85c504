// Two tabs: deletion requests, and suppressed users, whose new messages are dropped. The filters are in the page's address.

import { Button } from '@mantine/core'
import { Page, PageTabs } from '../../components/page.tsx'
import { ADMIN_ONLY, EDITOR_ONLY } from '../../session/needs-role.tsx'
import { useSession } from '../../session/session.tsx'
import { useSearchState } from '../../url/url-state.ts'
import { Requests } from './requests.tsx'
import { Suppressions } from './suppressions.tsx'

export default function DeletionsPage() {
  const [params, change] = useSearchState()
  const { isAdmin, mayEdit } = useSession()
  const tab = params.get('tab') === 'suppressions' ? 'suppressions' : 'requests'
  // Suppressed users belong to a source; a deletion reaches all of them.
  const isPossible = tab === 'requests' ? isAdmin : mayEdit
  const isForm = isPossible && params.get('new') !== null
  const close = (): void => change({ new: null }, { replace: true })
  return (
    <Page
      title="Deletions"
      about={
        tab === 'requests'
          ? 'Delete the stored messages of users who ask to be forgotten, and ask destinations to do the same.'
          : 'New messages from these users are dropped: they are neither stored nor delivered.'
      }
      actions={
        <Button
          size="sm"
          disabled={!isPossible}
          title={isPossible ? undefined : tab === 'requests' ? ADMIN_ONLY : EDITOR_ONLY}
          onClick={() => change({ new: '1' })}
        >
          {tab === 'requests' ? 'Delete users' : 'Suppress users'}
        </Button>
      }
    >
      <PageTabs
        clears={['state', 'user', 'source', 'new']}
        tabs={[
          { name: 'requests', label: 'Requests', panel: <Requests isForm={isForm} onCloseForm={close} /> },
          { name: 'suppressions', label: 'Suppressed users', panel: <Suppressions isForm={isForm} onCloseForm={close} /> },
        ]}
      />
    </Page>
  )
}
