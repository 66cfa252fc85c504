// Opens an address in the browser of the user, without a shell: the address is an argument of a program.

import { spawn } from 'node:child_process'

type Environment = Readonly<Record<string, string | undefined>>

/** Null if this machine has no browser to open, because nobody sits in front of it. BROWSER is a convention of Unix. */
export function browserProgram(
  env: Environment,
  platform: NodeJS.Platform = process.platform,
): [program: string, ...args: string[]] | null {
  const own = env['BROWSER']
  if (own !== undefined && own !== '') return [own]
  if (platform === 'darwin') return ['open']
  if (platform === 'win32') return ['rundll32', 'url.dll,FileProtocolHandler']
  // Without a display, xdg-open would start a browser for terminals, which cannot run the page.
  return env['DISPLAY'] || env['WAYLAND_DISPLAY'] ? ['xdg-open'] : null
}

/** `onFailure` is called if no browser was opened, which may turn out later. The program may outlive this process. */
export function openBrowser(url: string, env: Environment, onFailure: () => void): void {
  const [program, ...args] = browserProgram(env) ?? []
  if (program === undefined) return onFailure()
  const child = spawn(program, [...args, url], { stdio: 'ignore', detached: true, env: { ...env } })
  child.once('error', onFailure)
  child.once('exit', (code) => {
    if (code !== 0 && code !== null) onFailure()
  })
  child.unref()
}
