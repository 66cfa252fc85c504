// The start of the page: theme, questions to the API, session, shell. Nothing is drawn before it is known who looks.

import '@mantine/core/styles.css'
import './style.css'
import { MantineProvider } from '@mantine/core'
import { QueryClientProvider } from '@tanstack/react-query'
import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { queryClient } from './api/queries.ts'
import { Notices } from './notices.tsx'
import { viewAt } from './routes.tsx'
import { Session } from './session.tsx'
import { Shell } from './shell.tsx'
import { nonce, theme } from './theme.ts'

// What Mantine's windows hold the page still with (react-remove-scroll) makes a style element of its own, and looks here for the nonce.
Object.assign(globalThis, { __webpack_nonce__: nonce() })

// Beside the question who looks, and not after it. What cannot be loaded is told where it is shown.
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
