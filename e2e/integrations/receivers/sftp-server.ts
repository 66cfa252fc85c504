// An SFTP server on a free port of 127.0.0.1 with one account, which keeps the files that are written in memory. Its protocol is that of `ssh2`, which
// the library uses as a client.
//
//   await using server = await startSftpServer({ username: 'u', password: 'p', folder: '/uploads' })
//   server.files              content by path

import { once } from 'node:events'
import { createRequire } from 'node:module'

export interface SftpServer extends AsyncDisposable {
  port: number
  files: Map<string, string>
}

export interface SftpAccount {
  username: string
  password: string
  /** The only one that exists. */
  folder: string
}

type Emitter = { on(event: string, listener: (...values: never[]) => void): Emitter }
interface Login {
  method: string
  username: string
  password: string
  accept(): void
  reject(methods: string[]): void
}
interface Session extends Emitter {
  status(request: number, code: number): void
  handle(request: number, handle: Buffer): void
  attrs(request: number, attributes: object): void
}
interface Ssh {
  Server: new (
    options: object,
    onConnection: (client: Emitter & { end(): void }) => void,
  ) => Emitter & {
    listen(port: number, host: string): void
    address(): { port: number }
    close(done: () => void): void
    once(event: string, listener: () => void): void
  }
  utils: { generateKeyPairSync(type: string): { private: string }; sftp: { STATUS_CODE: Record<'OK' | 'NO_SUCH_FILE', number> } }
}

const require = createRequire(import.meta.url)
const { Server, utils } = require('ssh2') as Ssh
const { OK, NO_SUCH_FILE } = utils.sftp.STATUS_CODE
const FOLDER_MODE = 0o040755

export async function startSftpServer(account: SftpAccount): Promise<SftpServer> {
  const files = new Map<string, string>()
  const clients = new Set<{ end(): void }>()
  const server = new Server({ hostKeys: [utils.generateKeyPairSync('ed25519').private] }, (client) => {
    clients.add(client)
    client
      .on('authentication', (login: Login) => {
        const isRight = login.method === 'password' && login.username === account.username && login.password === account.password
        if (isRight) login.accept()
        else login.reject(['password'])
      })
      .on('session', (accept: () => Emitter) => {
        accept().on('sftp', (start: () => Session) => serve(start(), account, files))
      })
      .on('close', () => clients.delete(client))
      .on('error', () => {})
  })
  server.listen(0, '127.0.0.1')
  await once(server as never, 'listening')
  return {
    port: server.address().port,
    files,
    async [Symbol.asyncDispose]() {
      for (const client of clients) client.end()
      await new Promise<void>((resolve) => server.close(resolve))
    },
  }
}

function serve(session: Session, { folder }: SftpAccount, files: Map<string, string>): void {
  const open: string[] = []
  const stat = (request: number, path: string): void => {
    if (path === folder || path === '/') session.attrs(request, { mode: FOLDER_MODE, size: 0, uid: 0, gid: 0, atime: 0, mtime: 0 })
    else session.status(request, NO_SUCH_FILE)
  }
  session
    .on('STAT', stat)
    .on('LSTAT', stat)
    .on('OPEN', (request: number, path: string) => {
      if (!path.startsWith(`${folder}/`)) return session.status(request, NO_SUCH_FILE)
      open.push(path)
      files.set(path, '')
      const handle = Buffer.alloc(4)
      handle.writeUInt32BE(open.length - 1)
      session.handle(request, handle)
    })
    .on('WRITE', (request: number, handle: Buffer, _offset: number, data: Buffer) => {
      const path = open[handle.readUInt32BE()] as string
      files.set(path, `${files.get(path)}${data.toString()}`)
      session.status(request, OK)
    })
    .on('FSETSTAT', (request: number) => session.status(request, OK))
    .on('CLOSE', (request: number) => session.status(request, OK))
}
