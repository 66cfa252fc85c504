// The viewer's session, which is in a cookie, and the login form. The token is sent once and never stored in the page. A login link
// (`/#token=…`, as `npm run demo` prints it) works too: the token is removed from the URL before anything else happens.

import { Alert, Anchor, Button, Center, Code, Paper, PasswordInput, Stack, Title } from '@mantine/core'
import { useDocumentTitle } from '@mantine/hooks'
import { useQueryClient } from '@tanstack/react-query'
import { createContext, type ReactNode, useContext, useEffect, useState } from 'react'
import { type ApiProblem, call, listenForLogout, type Schemas } from '../api/client.ts'
import { commandFor, withCommand } from '../api/commands.ts'
import { useApi } from '../api/queries.ts'
import { entered, Form } from '../components/inputs.tsx'
import { ErrorAlert, Loading } from '../components/page.tsx'
import { Note, SmallNote } from '../components/styled.tsx'

type SessionInfo = Schemas['Session']

const Current = createContext<SessionInfo | null>(null)

/** The session of the user. `mayEdit`: whether the role is editor or admin. Throws outside of <Session>. */
export function useSession(): SessionInfo & { isAdmin: boolean; mayEdit: boolean } {
  const session = useContext(Current)
  if (session === null) throw new Error('useSession must be used inside of <Session>')
  return { ...session, isAdmin: session.role === 'admin', mayEdit: session.role !== 'viewer' }
}

/** Whether the user may change a destination. One that is shared with sources out of the user's scope can only be read. */
export function useMayEdit({ shared }: { shared?: boolean | undefined }): boolean {
  return useSession().mayEdit && shared !== true
}

/** Reads and removes the token of a login link. It is in the fragment because browsers never send that, so no access log contains it. */
function takeLinkToken(): string | null {
  const { pathname, search, hash } = window.location
  const [, token] = /^#token=([\w.~-]+)$/.exec(hash) ?? []
  if (token === undefined) return null
  window.history.replaceState(window.history.state, '', pathname + search)
  return token
}

let linkToken = takeLinkToken()

type State =
  | { is: 'loading' }
  | { is: 'logged-out'; hasExpired: boolean }
  | { is: 'logged-in'; session: SessionInfo }
  | { is: 'unavailable'; problem: ApiProblem }

export function Session({ children }: { children: ReactNode }) {
  const [state, setState] = useState<State>({ is: 'loading' })
  const client = useQueryClient()

  const loadSession = (): void => {
    call('GET /api/session').then(
      (session) => {
        linkToken = null
        setState({ is: 'logged-in', session })
      },
      (problem: ApiProblem) => {
        if (problem.status !== 401) return setState({ is: 'unavailable', problem })
        const token = linkToken
        linkToken = null
        if (token === null) return setState({ is: 'logged-out', hasExpired: false })
        // After a login, or a rejected token, the session says who is logged in. After a network error the token is kept for a retry.
        call('POST /api/login', { body: { token } }).then(loadSession, (failed: ApiProblem) => {
          if (failed.status === 401) return loadSession()
          linkToken = token
          setState({ is: 'unavailable', problem: failed })
        })
      },
    )
  }

  useEffect(() => {
    loadSession()
    // Opening a login link in a tab that already shows the dashboard does not reload the page.
    window.addEventListener('hashchange', () => {
      linkToken = takeLinkToken()
      if (linkToken !== null) loadSession()
    })
    listenForLogout(() => {
      client.clear()
      setState((before) => ({ is: 'logged-out', hasExpired: before.is === 'logged-in' }))
    })
  }, [])

  if (state.is === 'logged-in') return <Current value={state.session}>{children}</Current>
  if (state.is === 'logged-out') return <Login hasExpired={state.hasExpired} onLogin={loadSession} />
  return (
    <Center mih="100dvh" p="md">
      <Stack w={420} maw="100%">
        {state.is === 'loading' ? <Loading lines={3} /> : <ErrorAlert problem={state.problem} onRetry={loadSession} />}
      </Stack>
    </Center>
  )
}

function Login({ hasExpired, onLogin }: { hasExpired: boolean; onLogin: () => void }) {
  useDocumentTitle('Log in · Switchyard')
  const [token, setToken] = useState('')
  const [problem, setProblem] = useState<string | null>(null)
  const [isBusy, setBusy] = useState(false)
  const submit = async (): Promise<void> => {
    setBusy(true)
    setProblem(null)
    try {
      await call('POST /api/login', { body: { token: token.trim() } })
      onLogin()
    } catch (error) {
      const { status, message } = error as ApiProblem
      setProblem(status === 401 ? 'Invalid token. Enter a control token of this service.' : message)
    } finally {
      setBusy(false)
    }
  }
  return (
    <Center mih="100dvh" p="md" component="main">
      <Paper withBorder p="xl" w={440} maw="100%">
        <Form onSubmit={submit}>
          <Stack>
            <Title order={1} size="h2">
              Switchyard
            </Title>
            {hasExpired && <Alert color="blue">Your session has expired. Log in again to return to this page.</Alert>}
            <Note>
              Enter a control token: the one that the service printed on its first start, the value of <Code>SWITCHYARD_ADMIN_TOKEN</Code>,
              or one that was created in Settings.
            </Note>
            <PasswordInput
              label="Control token"
              {...entered(token, setToken)}
              autoComplete="current-password"
              autoFocus
              error={problem}
              required
            />
            <Button type="submit" loading={isBusy} disabled={token.trim() === ''}>
              Log in
            </Button>
            <SmallNote>
              Lost your token? Set <Code>SWITCHYARD_ADMIN_TOKEN</Code> to a new one and restart the service.{' '}
              <Anchor href="/docs" size="xs" underline="always">
                Read the documentation
              </Anchor>
            </SmallNote>
          </Stack>
        </Form>
      </Paper>
    </Center>
  )
}

export function useCommand(): string {
  const { data } = useApi('GET /api/installation', {})
  return commandFor(data?.command ?? 'switchyard', window.location.origin)
}

/** Replaces the commands in a text of the service. Errors of the API have them replaced already. */
export function useRunnable(): (text: string) => string {
  const command = useCommand()
  return (text) => withCommand(text, command)
}
