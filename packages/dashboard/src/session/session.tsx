// The user's session, which is in a cookie: who is logged in, or else the login page (login.tsx). All tabs of a browser share the cookie, so a tab in which
// somebody logs in or out tells the others. A login link (`/#token=…`, as `npm run demo` prints it) works too: the token is removed from the URL before anything
// else happens.

import { Center, Stack } from '@mantine/core'
import { useQueryClient } from '@tanstack/react-query'
import { createContext, type ReactNode, useContext, useEffect, useRef, useState } from 'react'
import { type ApiProblem, call, listenForLogout, type Schemas } from '../api/client.ts'
import { commandFor, withCommand } from '../api/commands.ts'
import { useApi } from '../api/queries.ts'
import { ErrorAlert, Loading } from '../components/page.tsx'
import { Login } from './login.tsx'
import { pathAfterLogin } from './login-address.ts'

type SessionInfo = Schemas['Session']

const Current = createContext<SessionInfo | null>(null)

/**
 * The session of the user. `mayEdit`: whether the role is editor or admin. `isLimited`: whether the user has only some sources. Throws outside of
 * <Session>.
 */
export function useSession(): SessionInfo & { isAdmin: boolean; mayEdit: boolean; isLimited: boolean } {
  const session = useContext(Current)
  if (session === null) throw new Error('useSession must be used inside of <Session>')
  const { role, sources } = session
  return { ...session, isAdmin: role === 'admin', mayEdit: role !== 'viewer', isLimited: sources !== 'all' }
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

/** The name of who is logged in; of a token, its own. */
export function personName({ name, email, subject }: SessionInfo['actor']): string {
  return name || email || subject || 'unknown'
}

/** Which session this is; another one has other rights, or belongs to somebody else. */
const identityOf = ({ actor, role, sources }: SessionInfo): string => JSON.stringify([actor.id, role, sources])

const channel = new BroadcastChannel('switchyard session')

/** Null: logged out. */
export function tellOtherTabs(session: SessionInfo | null): void {
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a BroadcastChannel has no target origin
  channel.postMessage(session === null ? null : identityOf(session))
}

type State =
  | { is: 'loading' }
  | { is: 'logged-out'; hasExpired: boolean }
  | { is: 'logged-in'; session: SessionInfo }
  | { is: 'unavailable'; problem: ApiProblem }

export function Session({ children }: { children: ReactNode }) {
  const [state, setState] = useState<State>({ is: 'loading' })
  const client = useQueryClient()
  const isLoggedOut = useRef(false)

  const loadSession = (): void => {
    call('GET /api/session').then(
      (session) => {
        linkToken = null
        const path = pathAfterLogin(window.location)
        if (path !== window.location.pathname + window.location.search) window.history.replaceState(null, '', path)
        tellOtherTabs(session)
        isLoggedOut.current = false
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
      // Several calls are answered with 401 at once. Clearing again would drop the queries of the login page.
      if (isLoggedOut.current) return
      isLoggedOut.current = true
      client.clear()
      setState((before) => ({ is: 'logged-out', hasExpired: before.is === 'logged-in' }))
    })
  }, [])

  // Somebody else has logged in or out in another tab, or an admin or the identity provider has changed the role.
  const identity = state.is === 'logged-in' ? identityOf(state.session) : null
  useEffect(() => {
    const refresh = (): void => {
      if (identity === null || document.visibilityState === 'hidden') return
      call('GET /api/session').then(
        (session) => {
          if (identityOf(session) !== identity) window.location.reload()
        },
        () => {},
      )
    }
    const onMessage = ({ data }: MessageEvent<string | null>): void => {
      // A reload shows the page to whoever is logged in now. Nothing that the page holds may be shown to another person.
      if (data !== identity) window.location.reload()
    }
    channel.addEventListener('message', onMessage)
    document.addEventListener('visibilitychange', refresh)
    return () => {
      channel.removeEventListener('message', onMessage)
      document.removeEventListener('visibilitychange', refresh)
    }
  }, [identity])

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

export function useCommand(): string {
  const { data } = useApi('GET /api/installation', {})
  return commandFor(data?.command ?? 'switchyard', window.location.origin)
}

/** Replaces the commands in a text of the service. Errors of the API have them replaced already. */
export function useRunnable(): (text: string) => string {
  const command = useCommand()
  return (text) => withCommand(text, command)
}
