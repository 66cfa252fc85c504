// The page of one destination, as its kind shows it. /destinations/new shows the form for a new one, by default for a webhook.

import { Suspense } from 'react'
import { useApi } from '../../api/queries.ts'
import { FoundPage, Loading, Page } from '../../components/page.tsx'
import type { DestinationType } from '../../destination/kind.ts'
import { KINDS, kindOf } from '../../kinds/kinds.tsx'
import { usePathPart, useSearchState } from '../../url/url-state.ts'

export default function DestinationPage() {
  const id = usePathPart(1)
  const [params] = useSearchState()
  const asked = params.get('type') ?? ''
  const { New } = KINDS[Object.hasOwn(KINDS, asked) ? (asked as DestinationType) : 'webhook']
  return <Suspense fallback={<IsLoading />}>{id === 'new' ? <New /> : <LoadedDestination key={id} id={id} />}</Suspense>
}

function IsLoading() {
  return (
    <Page title="Destination">
      <Loading lines={6} label="Loading destination" />
    </Page>
  )
}

function LoadedDestination({ id }: { id: string }) {
  const query = useApi('GET /api/destinations/{id}', { params: { id }, everyMs: 15_000 })
  return (
    <FoundPage
      query={query}
      id={id}
      name="Destination"
      notFound="destination_not_found"
      reasons="The destination was deleted, or the URL is incomplete."
      all={{ to: '/destinations', label: 'All destinations' }}
    >
      {(destination) => {
        const Shown = kindOf(destination).Page
        return <Shown destination={destination} />
      }}
    </FoundPage>
  )
}
