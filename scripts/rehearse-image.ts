// Runs the steps of deploy/Dockerfile without Docker, and starts the result like the image: on a read-only root, as
// user 1000, with a writable /data. Instead of the base image it uses the machine's /usr with the pinned Node.js, so it finds files that
// the build misses, but not programs that the base image lacks. Needs Linux and root (it mounts, in its own namespace), and the registry.
//
//   node scripts/rehearse-image.ts [FOLDER]       leaves the stages in the folder, if one is given

import { execFileSync, type SpawnSyncReturns, spawn, spawnSync } from 'node:child_process'
import { chownSync, cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { freePort } from '../packages/server/src/store/fixtures/free-port.ts'
import { ignoreRules, instructions } from './dockerfile.ts'

const root = join(import.meta.dirname, '..')
const OWNER = 1000
const PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'
/** npm's cache on this machine, so that packages are not downloaded again. */
const CACHE = execFileSync('npm', ['config', 'get', 'cache'], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim()

interface Stage {
  name: string
  /** What is written in it, but for /usr, which lies over this machine's. */
  folder: string
  usr: string
  workdir: string
  env: Record<string, string>
  user: string
  entrypoint: string[]
  cmd: string[]
  health: string[]
}

if (process.platform !== 'linux' || process.getuid?.() !== 0) {
  console.error('This script mounts file systems and changes users. Run it on Linux, as root.')
  process.exit(2)
}
const given = process.argv[2]
const work = given === undefined ? mkdtempSync(join(tmpdir(), 'switchyard-image-')) : resolve(given)
const ignored = ignoreRules(readFileSync(join(root, 'deploy', 'Dockerfile.dockerignore'), 'utf8'))
const stages = new Map<string, Stage>()
let stage: Stage | undefined

for (const [word, rest] of instructions(readFileSync(join(root, 'deploy', 'Dockerfile'), 'utf8'))) {
  console.log(`${stage?.name ?? ''}▸ ${word} ${rest.length > 140 ? `${rest.slice(0, 140)}…` : rest}`)
  if (word === 'FROM') stage = begin(rest)
  else if (stage === undefined) throw new Error(`${word} before FROM`)
  else take(stage, word, rest)
}
if (stage === undefined) throw new Error('no stage')
await start(stage)
if (given === undefined) rmSync(work, { recursive: true })

function begin(rest: string): Stage {
  const [, from = '', , name = 'image'] = /^(\S+)( AS (\S+))?$/.exec(rest) ?? []
  const home = join(work, name)
  rmSync(home, { recursive: true, force: true })
  mkdirSync(home, { recursive: true })
  const made: Stage = {
    ...(stages.get(from) ?? { workdir: '/', env: {}, user: '0:0', entrypoint: [], cmd: [], health: [] }),
    name,
    folder: join(home, 'root'),
    usr: join(home, 'usr'),
  }
  const parent = stages.get(from)
  if (parent === undefined) layBase(made)
  else for (const part of ['root', 'usr']) execFileSync('cp', ['-a', join(work, parent.name, part), join(home, part)])
  stages.set(name, made)
  return made
}

/** Creates the folders of a system, with Node.js where the base image has it. */
function layBase({ folder, usr }: Stage): void {
  for (const name of ['usr', 'etc', 'proc', 'dev', 'tmp', 'root', 'data-of-the-volume']) mkdirSync(join(folder, name), { recursive: true })
  for (const name of ['bin', 'sbin', 'lib', 'lib64']) symlinkSync(`usr/${name}`, join(folder, name))
  for (const name of ['passwd', 'group', 'resolv.conf', 'hosts', 'nsswitch.conf', 'ssl'])
    if (existsSync(join('/etc', name))) cpSync(join('/etc', name), join(folder, 'etc', name), { recursive: true, dereference: true })
  mkdirSync(join(usr, 'local', 'bin'), { recursive: true })
  cpSync(process.execPath, join(usr, 'local', 'bin', 'node'))
}

function take(of: Stage, word: string, rest: string): void {
  // The default of a build argument; it is kept as a variable, which makes no difference here.
  if (word === 'ARG') of.env[rest.split('=')[0] as string] = rest.split('=')[1] ?? ''
  else if (word === 'WORKDIR') mkdirSync(join(of.folder, (of.workdir = rest)), { recursive: true })
  else if (word === 'ENV') Object.assign(of.env, Object.fromEntries(rest.split(/\s+/).map((pair) => pair.split('=') as [string, string])))
  else if (word === 'COPY') copy(of, rest)
  else if (word === 'RUN') {
    const { status } = inside(of, ['sh', '-c', rest], { writable: true, stdio: 'inherit' })
    if (status !== 0) throw new Error(`RUN ended with ${status}: ${rest}`)
  } else if (word === 'USER') of.user = rest
  else if (word === 'ENTRYPOINT') of.entrypoint = JSON.parse(rest) as string[]
  else if (word === 'CMD') of.cmd = JSON.parse(rest) as string[]
  else if (word === 'HEALTHCHECK') of.health = JSON.parse(rest.slice(rest.indexOf('['))) as string[]
  else if (word !== 'VOLUME' && word !== 'EXPOSE') throw new Error(`${word}: this Dockerfile instruction is not supported by the rehearsal`)
}

function copy(of: Stage, rest: string): void {
  const words = rest.split(/\s+/)
  const from = /^--from=(\S+)$/.exec(words[0] ?? '')?.[1]
  const [sources, target] = [words.slice(from === undefined ? 0 : 1, -1), words.at(-1) as string]
  const origin = from === undefined ? root : (stages.get(from)?.folder ?? `no stage ${from}`)
  for (const source of sources) {
    const path = join(origin, source)
    const isKept = (file: string): boolean => from !== undefined || !ignored(file.slice(root.length + 1))
    // Docker would fail because the file is not in the build context.
    if (!existsSync(path) || (statSync(path).isFile() && !isKept(path)))
      throw new Error(`COPY: ${source} does not exist, or .dockerignore excludes it`)
    const into = resolve(of.workdir, target)
    const to = join(of.folder, target.endsWith('/') ? join(into, source.split('/').at(-1) as string) : into)
    mkdirSync(dirname(to), { recursive: true })
    if (statSync(path).isFile()) cpSync(path, to)
    else copyFolder(path, to, isKept)
  }
}

/** Decides for each file, because an excluded folder may contain files that are included. */
function copyFolder(path: string, to: string, isKept: (file: string) => boolean): void {
  if (!path.startsWith(`${root}/`) || path.startsWith(`${work}/`)) {
    mkdirSync(to, { recursive: true })
    execFileSync('cp', ['-a', `${path}/.`, to])
    return
  }
  for (const entry of readdirSync(path, { recursive: true, withFileTypes: true })) {
    const file = join(entry.parentPath, entry.name)
    if (entry.isFile() && isKept(file)) cpSync(file, join(to, file.slice(path.length)), { recursive: true })
  }
}

/** Arguments of `unshare` to run a command inside the stage, with its own mounts and root. */
function namespace({ folder, usr, workdir, user }: Stage, command: string[], { writable }: { writable: boolean }): string[] {
  const scratch = `${usr}-work`
  mkdirSync(scratch, { recursive: true })
  const steps = [
    'set -e',
    `mount --bind "${folder}" "${folder}"`,
    `mount -t overlay overlay -o "lowerdir=/usr,upperdir=${usr},workdir=${scratch}" "${folder}/usr"`,
    `mount --rbind /dev "${folder}/dev"`,
    `mount -t proc proc "${folder}/proc"`,
    ...(writable ? [`mkdir -p "${folder}/tmp/npm" "${CACHE}"`, `mount --bind "${CACHE}" "${folder}/tmp/npm"`] : []),
    ...(writable ? [] : [`mount --bind "${folder}/data-of-the-volume" "${folder}/data"`]),
    ...(writable ? [] : [`mount -o remount,ro,bind "${folder}/usr"`, `mount -o remount,ro,bind "${folder}"`]),
    `exec chroot --userspec=${writable ? '0:0' : user} "${folder}" sh -c 'cd "$0" && exec "$@"' "${workdir}" "$@"`,
  ]
  return ['--mount', '--propagation', 'private', 'sh', '-c', steps.join('\n'), 'sh', ...command]
}

function inside(
  of: Stage,
  command: string[],
  { writable, stdio }: { writable: boolean; stdio: 'inherit' | 'pipe' },
): SpawnSyncReturns<string> {
  const env = { PATH, HOME: '/root', ...of.env, npm_config_cache: '/tmp/npm', npm_config_prefer_offline: 'true' }
  return spawnSync('unshare', namespace(of, command, { writable }), { env, stdio, encoding: 'utf8' })
}

async function start(image: Stage): Promise<void> {
  const volume = join(image.folder, 'data-of-the-volume')
  const { uid, gid } = statSync(join(image.folder, 'data'))
  // A new volume gets the owner of the image's folder.
  chownSync(volume, uid, gid)
  const env = { PATH, HOME: '/', ...image.env, SWITCHYARD_PORT: String(await freePort()), SWITCHYARD_LOG: 'warn' }
  const began = performance.now()
  const child = spawn('unshare', namespace(image, [...image.entrypoint, ...image.cmd], { writable: false }), {
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const ended = new Promise<string>((done) => child.on('exit', (code, signal) => done(`${code ?? signal}`)))
  for await (const line of createInterface({ input: child.stdout })) if (line.startsWith('Send a message')) break
  child.stdout.resume()
  const report = (what: string, ...values: unknown[]): void => console.log(`  ${what.padEnd(34)}`, ...values)
  console.log('Started like the image:')
  report('listens after', `${Math.round(performance.now() - began)} ms`)
  const url = `http://127.0.0.1:${env.SWITCHYARD_PORT}`
  for (const path of ['/healthz', '/readyz', '/', '/docs', '/icon.svg']) {
    const answer = await fetch(url + path)
    const text = await answer.text()
    report(`GET ${path}`, answer.status, /has not been built/.test(text) ? 'NOT BUILT' : `${text.length} characters`)
    if (!answer.ok || /has not been built/.test(text)) process.exitCode = 1
  }
  const health = spawnSync('unshare', namespace(image, image.health, { writable: false }), { env })
  report('health check', health.status)
  const who = spawnSync(
    'unshare',
    namespace(image, ['sh', '-c', 'id -u; touch /app/x /tmp/x /usr/x 2>&1; switchyard --version'], { writable: false }),
    { env, encoding: 'utf8' },
  )
  report('user, and writable folders', JSON.stringify(who.stdout))
  const { uid: owner } = statSync(join(volume, 'switchyard.db'))
  report('owner of the store', owner)
  const asked = performance.now()
  child.kill('SIGTERM')
  report('SIGTERM: exit code', await ended, `after ${Math.round(performance.now() - asked)} ms`)
  if (health.status !== 0 || owner !== OWNER || (await ended) !== '0') process.exitCode = 1
}
