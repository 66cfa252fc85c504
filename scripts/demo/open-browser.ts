// Opens an address in the visitor's browser, where there is a display to show it. Never fails: the address is printed anyway.

import { spawn } from 'node:child_process'

/** Gives whether it was tried. */
export function openBrowser(address: string, env = process.env, platform = process.platform): boolean {
  const command = opener(env, platform)
  if (command === null) return false
  const [file, ...args] = command as [string, ...string[]]
  spawn(file, [...args, address], { detached: true, stdio: 'ignore' })
    .on('error', () => {})
    .unref()
  return true
}

/** Null: nobody would see it. */
export function opener(env: NodeJS.ProcessEnv, platform: NodeJS.Platform): string[] | null {
  if (env['CI'] || env['SSH_CONNECTION']) return null
  if (platform === 'darwin') return ['open']
  if (platform === 'win32') return ['cmd', '/c', 'start', '']
  return env['DISPLAY'] || env['WAYLAND_DISPLAY'] ? ['xdg-open'] : null
}
