// Shows notices such as "Deleted". The code that shows them is loaded with the first notice, because most visits have none.

import { notificationsStore } from '@mantine/notifications'
import { lazy, Suspense, useEffect, useState } from 'react'

const Container = lazy(() => import('./notices-container.tsx'))

export function Notices() {
  const [isWanted, setWanted] = useState(false)
  useEffect(() => notificationsStore.subscribe(() => setWanted(true)), [])
  return isWanted ? (
    <Suspense>
      <Container />
    </Suspense>
  ) : null
}
