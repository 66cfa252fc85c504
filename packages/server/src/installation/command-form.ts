// How to run this program where it is installed. Texts say `switchyard COMMAND`; what is printed says what works for the reader: the path of the
// program in a clone or in a project, `switchyard` where it is on the PATH (a global installation, the image). Never `npx switchyard`: outside a
// clone, that would run a package of this name that is not ours.

import { existsSync } from 'node:fs'
import { join } from 'node:path'

/** Where the command line finds a service without SWITCHYARD_URL. */
const USUAL_URL = 'http://127.0.0.1:8080'

export interface FormOptions {
  /** Where the reader stands, if that is known. */
  cwd?: string
  /** The address of the service that the reader uses; undefined if the reader has set it. */
  url?: string
  /** Of this program; replaced by tests. */
  folder?: string
}

export function commandForm({ cwd, url = USUAL_URL, folder = import.meta.dirname }: FormOptions = {}): string {
  const variable = url === USUAL_URL || url === USUAL_URL.replace('127.0.0.1', 'localhost') ? '' : `SWITCHYARD_URL=${url} `
  return variable + programOf(folder, cwd)
}

function programOf(folder: string, cwd: string | undefined): string {
  const [, project] = /^(.*)[\\/]node_modules[\\/]@switchyard[\\/]server(?:[\\/]|$)/.exec(folder) ?? []
  if (project !== undefined) {
    if (/[\\/]_npx[\\/]/.test(folder)) return 'npx @switchyard/server'
    const program = join(project, 'node_modules', '.bin', 'switchyard')
    return existsSync(program) ? quoted(program) : 'switchyard'
  }
  // The image has the packages of a clone, but not the file at its root.
  const root = join(folder, '..', '..', '..', '..')
  if (!existsSync(join(root, 'switchyard'))) return 'switchyard'
  return cwd === root ? './switchyard' : quoted(join(root, 'switchyard'))
}

function quoted(path: string): string {
  return /^[\w@%+=:,./-]+$/.test(path) ? path : `'${path.replaceAll("'", `'\\''`)}'`
}

/** Our own text with the commands in it as they can be run. */
export function inForm(text: string, form: string): string {
  return text.replaceAll(
    /(^[ \t]*(?:[A-Z_]+=\S+ )?|[`|:(] *|\b[Rr]un (?:the same )?)switchyard(?= (?:[a-z]|-|[A-Z[]))/gm,
    (_, before: string) => before + form,
  )
}
