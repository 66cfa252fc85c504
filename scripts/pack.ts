// Makes `npm pack` in a package's folder pack what is published. In the repository a package's manifest points at src/.
// Before packing, this script replaces it with the published manifest, and afterwards it restores the repository's. npm runs both
// (prepack, postpack). If packing is killed in between, the next run, or `restore`, repairs the manifest.

import { spawnSync } from 'node:child_process'
import { copyFileSync, existsSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const [step, name] = process.argv.slice(2)
const root = join(import.meta.dirname, '..')
const home = join(root, 'packages', name ?? '')
const manifest = join(home, 'package.json')
const kept = join(home, 'package.json.source')
const license = join(home, 'LICENSE')

if (name === undefined || !existsSync(manifest) || (step !== 'prepare' && step !== 'restore')) {
  console.error('usage: node scripts/run.mjs scripts/pack.ts prepare|restore PACKAGE')
  process.exit(2)
}

restore()
if (step === 'prepare') {
  // npm prints the tarball's name on stdout, and scripts read it there.
  const built = spawnSync(process.execPath, [join(root, 'scripts', 'build.ts')], { stdio: ['ignore', 2, 2] })
  if (built.status !== 0) process.exit(built.status ?? 1)
  copyFileSync(manifest, kept)
  writeFileSync(`${manifest}.new`, `${JSON.stringify(publishedManifest(), null, 2)}\n`)
  renameSync(`${manifest}.new`, manifest)
  copyFileSync(join(root, 'LICENSE'), license)
}

function restore(): void {
  if (!existsSync(kept)) return
  renameSync(kept, manifest)
  rmSync(license, { force: true })
}

/** The manifest of dist/, with paths relative to the folder above. */
function publishedManifest(): Record<string, unknown> {
  const text = readFileSync(join(home, 'dist', 'package.json'), 'utf8').replaceAll(/"\.\/(esm|cjs)\//g, '"./dist/$1/')
  const fields = JSON.parse(text) as Record<string, unknown>
  const { scripts } = JSON.parse(readFileSync(kept, 'utf8')) as { scripts: Record<string, string> }
  const data = Object.keys(fields['exports'] as object).filter((path) => /^\.\/.*\.json$/.test(path) && path !== './package.json')
  // npm still needs the script that restores the repository's manifest.
  return { ...fields, files: ['dist/esm', 'dist/cjs', ...data], scripts: { postpack: scripts['postpack'] } }
}
