// Who looks: the session of the browser's cookie, or the form that begins one. The token is sent once and kept nowhere in the page: also
// the one of a link (`/#token=…`, as `npm run demo` prints it), which is taken out of the address before anything else happens.

import { Alert, Anchor, Button, Center, Code, Paper, PasswordInput, Stack, Text, Title } from '@mantine/core'
import { useDocumentTitle } from '@mantine/hooks'
import { useQueryClient } from '@tanstack/react-query'
import { createContext, type FormEvent, type ReactNode, useContext, useEffect, useState } from 'react'
import { type ApiProblem, call, listenForLogout, type Schemas } from './api/client.ts'
import { ErrorAlert, Loading } from './components/query-states.tsx'

type SessionInfo = Schemas['Session']

const Current = createContext<SessionInfo | null>(null)

/** Who looks. Only inside of Session. */
export function useSession(): SessionInfo & { isAdmin: boolean } {
  const session = useContext(Current)
  if (session === null) throw new Error('useSession outside of Session')
  return { ...session, isAdmin: session.role === 'admin' }
}

/** In the fragment, because that is sent to no server and stands in no log. */
function tokenOfLink(): string | null {
  const { pathname, search, hash } = window.location
  const [, token] = /^#token=([\w.~-]+)$/.exec(hash) ?? []
  if (token === undefined) return null
  window.history.replaceState(window.history.state, '', pathname + search)
  return token
}

let linkToken = tokenOfLink()

type State = { is: 'asking' } | { is: 'out'; isOver: boolean } | { is: 'in'; session: SessionInfo } | { is: 'away'; problem: ApiProblem }

export function Session({ children }: { children: ReactNode }) {
  const [state, setState] = useState<State>({ is: 'asking' })
  const client = useQueryClient()

  const ask = (): void => {
    call('GET /api/session').then(
      (session) => {
        linkToken = null
        setState({ is: 'in', session })
      },
      (problem: ApiProblem) => {
        if (problem.status !== 401) return setState({ is: 'away', problem })
        const token = linkToken
        linkToken = null
        if (token === null) return setState({ is: 'out', isOver: false })
        // Whether it was right or not is told by who is logged in then; what could not be asked is asked again.
        call('POST /api/login', { body: { token } }).then(ask, (failed: ApiProblem) => {
          if (failed.status === 401) return ask()
          linkToken = token
          setState({ is: 'away', problem: failed })
        })
      },
    )
  }

  useEffect(() => {
    ask()
    // A link that is opened where the dashboard is shown already loads nothing anew.
    window.addEventListener('hashchange', () => {
      linkToken = tokenOfLink()
      if (linkToken !== null) ask()
    })
    listenForLogout(() => {
      client.clear()
      setState((before) => ({ is: 'out', isOver: before.is === 'in' }))
    })
  }, [])

  if (state.is === 'in') return <Current value={state.session}>{children}</Current>
  if (state.is === 'out') return <Login isOver={state.isOver} onLogin={ask} />
  return (
    <Center mih="100dvh" p="md">
      <Stack w={420} maw="100%">
        {state.is === 'asking' ? <Loading lines={3} /> : <ErrorAlert problem={state.problem} onRetry={ask} />}
      </Stack>
    </Center>
  )
}

function Login({ isOver, onLogin }: { isOver: boolean; onLogin: () => void }) {
  useDocumentTitle('Log in · Switchyard')
  const [token, setToken] = useState('')
  const [problem, setProblem] = useState<string | null>(null)
  const [isBusy, setBusy] = useState(false)
  const submit = async (event: FormEvent): Promise<void> => {
    event.preventDefault()
    setBusy(true)
    setProblem(null)
    try {
      await call('POST /api/login', { body: { token: token.trim() } })
      onLogin()
    } catch (error) {
      const { status, message } = error as ApiProblem
      setProblem(status === 401 ? 'That is not a control token of this service.' : message)
    } finally {
      setBusy(false)
    }
  }
  return (
    <Center mih="100dvh" p="md" component="main">
      <Paper withBorder p="xl" w={440} maw="100%">
        <form onSubmit={(event) => void submit(event)}>
          <Stack>
            <Title order={1} size="h2">
              Switchyard
            </Title>
            {isOver && <Alert color="blue">Your session is over. Log in again to go on where you were.</Alert>}
            <Text size="sm" c="dimmed">
              Log in with the token that was printed when the service was started first, with the one in <Code>SWITCHYARD_ADMIN_TOKEN</Code>
              , or with one made in the settings.
            </Text>
            <PasswordInput
              label="Control token"
              value={token}
              onChange={(event) => setToken(event.currentTarget.value)}
              autoComplete="current-password"
              autoFocus
              error={problem}
              required
            />
            <Button type="submit" loading={isBusy} disabled={token.trim() === ''}>
              Log in
            </Button>
            <Text size="xs" c="dimmed">
              Lost it? Set <Code>SWITCHYARD_ADMIN_TOKEN</Code> to one of your own and start the service again.{' '}
              <Anchor href="/docs" size="xs" underline="always">
                The API is described here.
              </Anchor>
            </Text>
          </Stack>
        </form>
      </Paper>
    </Center>
  )
}
