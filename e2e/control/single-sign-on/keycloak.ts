// A real Keycloak for the tests of single sign-on: a process in development mode on a free port, with its data in memory and the realm that
// docs/guide/single-sign-on.md tells users to import. Its distribution is downloaded once, with Maven, into the user's cache folder.
//
//   const keycloak = await prepareKeycloak()                       { missing: 'Java 17 …' } says why the tests are skipped
//   await using running = await startKeycloak(keycloak, serviceUrl)
//   await running.addUser({ username: 'ada', password: 'x', groups: ['shop-team'] })
//   await running.admin('/users?username=ada')                     the admin API of the realm

import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { createReadStream, existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { promisify } from 'node:util'
import { freePort } from '../../../packages/server/src/store/fixtures/free-port.ts'
import { Signals } from '../../system/signals.ts'

const run = promisify(execFile)

const VERSION = '26.4.7'
const SHA256 = 'aca60ab72ae4d67adc6b8fe7fca5e08d16a6bb5e4a4f2ebb54050e3f5503fd2b'
const OLDEST_JAVA = 17
/** The download has 160 MB. */
const DOWNLOAD_MS = 600_000
/** The first start also prepares the distribution, which takes two minutes on a busy machine. */
const START_MS = 600_000

export const REALM = 'company'
export const CLIENT_ID = 'switchyard'

export type Prepared = { folder: string } | { missing: string }

export interface KeycloakUser {
  username: string
  password: string
  email?: string
  emailVerified?: boolean
  groups?: string[]
}

export interface Keycloak extends AsyncDisposable {
  issuer: string
  clientSecret: string
  addUser(user: KeycloakUser): Promise<string>
  /** Calls the admin API of the realm. */
  admin<T = unknown>(path: string, init?: { method?: string; body?: unknown }): Promise<T>
  kill: (signal: NodeJS.Signals) => void
}

/** Finds the distribution, or downloads it. Resolves with what is missing if that is impossible on this machine. */
export async function prepareKeycloak(): Promise<Prepared> {
  const java = await javaVersion()
  if (java === null || java < OLDEST_JAVA)
    return { missing: `Keycloak needs Java ${OLDEST_JAVA} or newer, and ${java === null ? 'there is none' : `this is Java ${java}`}.` }
  const cache = join(process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache'), 'switchyard-tests')
  const folder = join(cache, `keycloak-${VERSION}`)
  if (existsSync(folder)) return { folder }
  try {
    mkdirSync(cache, { recursive: true, mode: 0o700 })
    await download(cache, folder)
    return { folder }
  } catch (error) {
    return { missing: `Keycloak ${VERSION} could not be downloaded with Maven: ${(error as Error).message.trim().slice(0, 1_000)}` }
  }
}

async function javaVersion(): Promise<number | null> {
  const home = process.env['JAVA_HOME']
  try {
    const { stderr, stdout } = await run(home === undefined ? 'java' : join(home, 'bin', 'java'), ['-version'])
    const [, version] = /version "(\d+)/.exec(stderr + stdout) ?? []
    return version === undefined ? null : Number(version)
  } catch {
    return null
  }
}

async function download(cache: string, folder: string): Promise<void> {
  const place = mkdtempSync(join(cache, 'download-'))
  try {
    const artifact = `org.keycloak:keycloak-quarkus-dist:${VERSION}:tar.gz`
    await run('mvn', ['--batch-mode', '--quiet', 'dependency:copy', `-Dartifact=${artifact}`, `-DoutputDirectory=${place}`], {
      cwd: place,
      timeout: DOWNLOAD_MS,
    })
    const archive = join(place, `keycloak-quarkus-dist-${VERSION}.tar.gz`)
    const hash = createHash('sha256')
    await pipeline(createReadStream(archive), hash)
    const found = hash.digest('hex')
    if (found !== SHA256) throw new Error(`The archive has the SHA-256 ${found} instead of ${SHA256}.`)
    await run('tar', ['-xzf', archive, '-C', place])
    renameSync(join(place, `keycloak-${VERSION}`), folder)
  } catch (error) {
    // Another run may have been faster.
    if (!existsSync(folder)) throw error
  } finally {
    rmSync(place, { recursive: true, force: true })
  }
}

/** `serviceUrl`: the address of the service, to which Keycloak sends browsers and its back-channel logouts. */
export async function startKeycloak({ folder }: { folder: string }, serviceUrl: string): Promise<Keycloak> {
  const url = `http://127.0.0.1:${await freePort()}`
  const password = 'admin of the tests'
  const { child, ended } = await startProcess(folder, new URL(url).port, password)
  const kill = (signal: NodeJS.Signals): void => void child.kill(signal)
  const dispose = async (): Promise<void> => {
    kill('SIGTERM')
    const tooLong = setTimeout(kill, 20_000, 'SIGKILL')
    await ended.finally(() => clearTimeout(tooLong))
  }
  const admin = async <T>(path: string, { method = 'GET', body }: { method?: string; body?: unknown } = {}): Promise<T> => {
    const answer = await fetch(`${url}/admin/realms${path}`, {
      method,
      // The tokens of the admin API last for a minute only.
      headers: { authorization: `Bearer ${await adminToken(url, password)}`, 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    const text = await answer.text()
    if (!answer.ok) throw new Error(`${method} ${path} of Keycloak: ${answer.status} ${text}`)
    return (text === '' ? undefined : JSON.parse(text)) as T
  }
  const ofRealm: Keycloak['admin'] = (path, init) => admin(`/${REALM}${path}`, init)
  try {
    const realm = readFileSync(join(import.meta.dirname, '..', '..', '..', 'deploy', 'keycloak', 'realm.json'), 'utf8')
    await admin('', { method: 'POST', body: JSON.parse(realm.replaceAll('http://127.0.0.1:8080', serviceUrl)) as unknown })
    const [client] = await ofRealm<{ id: string }[]>(`/clients?clientId=${CLIENT_ID}`)
    const { value } = await ofRealm<{ value: string }>(`/clients/${client?.id}/client-secret`)
    return {
      issuer: `${url}/realms/${REALM}`,
      clientSecret: value,
      admin: ofRealm,
      async addUser({ username, password: own, email = `${username}@example.com`, emailVerified = true, groups = [] }) {
        await ofRealm('/users', {
          method: 'POST',
          body: {
            username,
            email,
            emailVerified,
            firstName: username,
            lastName: 'Example',
            enabled: true,
            groups: groups.map((name) => `/${name}`),
            credentials: [{ type: 'password', value: own, temporary: false }],
          },
        })
        const [user] = await ofRealm<{ id: string }[]>(`/users?username=${encodeURIComponent(username)}&exact=true`)
        if (user === undefined) throw new Error(`Keycloak has no user ${username}`)
        return user.id
      },
      kill,
      [Symbol.asyncDispose]: dispose,
    }
  } catch (error) {
    await dispose()
    throw error
  }
}

async function startProcess(folder: string, port: string, password: string): Promise<{ child: ChildProcess; ended: Promise<unknown> }> {
  const child = spawn(join(folder, 'bin', 'kc.sh'), ['start-dev', '--http-host=127.0.0.1', `--http-port=${port}`, '--db=dev-mem'], {
    env: {
      ...process.env,
      KC_BOOTSTRAP_ADMIN_USERNAME: 'admin',
      KC_BOOTSTRAP_ADMIN_PASSWORD: password,
      // Compiles less, because the process runs for a minute only.
      JAVA_OPTS_APPEND: '-XX:TieredStopAtLevel=1',
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const signals = new Signals()
  let printed = ''
  let isOver = false
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      printed = (printed + text).slice(-20_000)
      signals.notify()
    })
  }
  const ended = new Promise<void>((resolve) => {
    const end = (): void => {
      isOver = true
      signals.notify()
      resolve()
    }
    child.once('error', end)
    child.once('close', end)
  })
  process.once('exit', () => child.kill('SIGTERM'))
  try {
    await signals.until(
      () => {
        if (isOver) throw new Error(`Keycloak ended at its start\n${printed}`)
        return /Listening on: http/.test(printed)
      },
      { what: 'Keycloak listens', deadlineMs: START_MS, state: () => printed },
    )
  } catch (error) {
    child.kill('SIGTERM')
    throw error
  }
  return { child, ended }
}

async function adminToken(url: string, password: string): Promise<string> {
  const answer = await fetch(`${url}/realms/master/protocol/openid-connect/token`, {
    method: 'POST',
    body: new URLSearchParams({ grant_type: 'password', client_id: 'admin-cli', username: 'admin', password }),
  })
  if (!answer.ok) throw new Error(`Keycloak gives no admin token: ${answer.status} ${await answer.text()}`)
  return ((await answer.json()) as { access_token: string }).access_token
}
