// The page of one destination, as its kind shows it. /destinations/new shows the form for a new one, by default for a webhook.

import { Suspense } from 'react'
import { Loading, Page, ResourcePage } from '../../components/page.tsx'
import type { DestinationType } from '../../destination/kind.ts'
import { KINDS, kindOf } from '../../kinds/kinds.tsx'
import { usePathPart, useSearchState } from '../../url/url-state.ts'

export default function DestinationPage() {
  const id = usePathPart(1)
  const [params] = useSearchState()
  const asked = params.get('type') ?? ''
  const { New } = KINDS[Object.hasOwn(KINDS, asked) ? (asked as DestinationType) : 'webhook']
  return <Suspense fallback={<IsLoading />}>{id === 'new' ? <New /> : <LoadedDestination />}</Suspense>
}

function IsLoading() {
  return (
    <Page title="Destination">
      <Loading lines={6} label="Loading destination" />
    </Page>
  )
}

function LoadedDestination() {
  return (
    <ResourcePage name="Destination" reasons="The destination was deleted, or the URL is incomplete.">
      {(destination) => {
        const Shown = kindOf(destination).Page
        return <Shown destination={destination} />
      }}
    </ResourcePage>
  )
}
