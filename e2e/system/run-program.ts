// Child processes of the tests. Each is killed after a deadline. If one fails, the error has its output.

import { execFile } from 'node:child_process'

export interface Ended {
  stdout: string
  stderr: string
  elapsedMs: number
}

export interface RunOptions {
  cwd: string
  deadlineMs?: number
}

/** Resolves when the program has ended with 0. */
export function run(file: string, args: string[], { cwd, deadlineMs = 60_000 }: RunOptions): Promise<Ended> {
  const startedAt = performance.now()
  // Not inherited, because the options of this runtime can mean something else in another version.
  const env = { ...process.env, NODE_OPTIONS: undefined, NODE_TEST_CONTEXT: undefined }
  return new Promise((resolve, reject) => {
    execFile(file, args, { cwd, env, timeout: deadlineMs, killSignal: 'SIGKILL', maxBuffer: 16 * 1024 * 1024 }, (error, stdout, stderr) => {
      const elapsedMs = performance.now() - startedAt
      if (!error) return resolve({ stdout, stderr, elapsedMs })
      const how = error.killed ? `did not end within ${deadlineMs} ms` : `ended with ${error.code ?? error.signal}`
      reject(new Error(`${file} ${args.join(' ')} ${how}\n${stdout}${stderr}`, { cause: error }))
    })
  })
}

/** The path of npm, however these tests were started. */
export function npm(args: string[], options: RunOptions): Promise<Ended> {
  const cli = process.env['npm_execpath']
  return cli !== undefined && /\.c?js$/.test(cli) ? run(process.execPath, [cli, ...args], options) : run('npm', args, options)
}
