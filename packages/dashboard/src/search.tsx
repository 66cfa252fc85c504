// Opens the search dialog with ⌘K or Ctrl+K. The dialog's code is loaded when it is first opened, to keep the first load small.

import { useHotkeys } from '@mantine/hooks'
import { lazy, Suspense, useEffect, useState } from 'react'

const Dialog = lazy(() => import('./search-dialog.tsx'))

let open: () => void = () => {}

export function openSearch(): void {
  open()
}

export function Search() {
  const [openCount, setOpenCount] = useState(0)
  useEffect(() => {
    open = () => setOpenCount((before) => before + 1)
  }, [])
  // The empty list of ignored tags: the shortcut works in input fields too.
  useHotkeys([['mod+K', openSearch]], [])
  return openCount === 0 ? null : (
    <Suspense>
      <Dialog openCount={openCount} />
    </Suspense>
  )
}
