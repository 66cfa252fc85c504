// The entry point: theme, API queries, session, shell. Nothing is shown before it is known who is logged in.

import '@fontsource-variable/inter/wght.css'
import '@mantine/core/styles.css'
import './style.css'
import { MantineProvider } from '@mantine/core'
import { QueryClientProvider } from '@tanstack/react-query'
import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { queryClient } from './api/queries.ts'
import { nonce, theme } from './components/theme.ts'
import { Notices } from './notices.tsx'
import { viewAt } from './routes.tsx'
import { Session } from './session/session.tsx'
import { Shell } from './shell.tsx'

// react-remove-scroll, which keeps the page from scrolling behind Mantine's dialogs, creates a style element and reads its nonce from here.
Object.assign(globalThis, { __webpack_nonce__: nonce() })

// Loads the page's code at the same time as the session. The error boundary reports a failure when the page is shown.
viewAt(window.location.pathname)
  ?.load()
  .catch(() => {})

createRoot(document.getElementById('root') as HTMLElement).render(
  <StrictMode>
    <MantineProvider theme={theme} defaultColorScheme="auto" getStyleNonce={nonce}>
      <QueryClientProvider client={queryClient}>
        <Notices />
        <Session>
          <Shell />
        </Session>
      </QueryClientProvider>
    </MantineProvider>
  </StrictMode>,
)
