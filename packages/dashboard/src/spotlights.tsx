// ⌘K from anywhere. What it opens is loaded when it is first asked for, so that the first page does not wait for it.

import { useHotkeys } from '@mantine/hooks'
import { lazy, Suspense, useEffect, useState } from 'react'

const Dialog = lazy(() => import('./spotlight-dialog.tsx'))

let ask: () => void = () => {}

export function openSpotlight(): void {
  ask()
}

export function Spotlights() {
  const [asked, setAsked] = useState(0)
  useEffect(() => {
    ask = () => setAsked((before) => before + 1)
  }, [])
  // In fields, too.
  useHotkeys([['mod+K', openSpotlight]], [])
  return asked === 0 ? null : (
    <Suspense>
      <Dialog asked={asked} />
    </Suspense>
  )
}
