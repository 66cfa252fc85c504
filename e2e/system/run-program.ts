// Child processes of the tests. Each has a deadline after which it is killed, and one that fails says why: its output is
// in the error.

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
export function run(file: string, args: string[], { cwd, deadlineMs = 30_000 }: RunOptions): Promise<Ended> {
  const startedAt = performance.now()
  // Not inherited: options that the tests' own runtime was started with mean something else to another version.
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

/** npm, however these tests were started. */
export function npm(args: string[], options: RunOptions): Promise<Ended> {
  const cli = process.env['npm_execpath']
  return cli !== undefined && /\.c?js$/.test(cli) ? run(process.execPath, [cli, ...args], options) : run('npm', args, options)
}
