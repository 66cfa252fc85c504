// An npm registry on loopback with packages that tests define, so that npm can install them without a network.

import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { gzipSync } from 'node:zlib'

export interface RegistryPackage {
  manifest: { name: string; version: string; [field: string]: unknown }
  /** By path, the text of a file, or the path of a file to copy. */
  files: Record<string, string | { copyOf: string }>
}

export interface PackageRegistry extends AsyncDisposable {
  url: string
  /** The entries of a project's lockfile, by path. */
  locked: Record<string, object>
}

export async function startPackageRegistry(packages: RegistryPackage[]): Promise<PackageRegistry> {
  const published = packages.map(({ manifest, files }) => {
    const tarball = pack(manifest, files)
    return { manifest, tarball, integrity: `sha512-${createHash('sha512').update(tarball).digest('base64')}` }
  })
  let url = ''
  const server = createServer(({ url: path = '' }, response) => {
    const found = published.find(({ manifest }) => path === `/${manifest.name}` || path === `/tarballs/${manifest.name}`)
    if (found === undefined) return response.writeHead(404).end('{}')
    const { manifest, tarball, integrity } = found
    if (path.startsWith('/tarballs/')) return response.end(tarball)
    const version = { ...manifest, dist: { tarball: `${url}tarballs/${manifest.name}`, integrity } }
    response.setHeader('content-type', 'application/json')
    return response.end(
      JSON.stringify({ name: manifest.name, 'dist-tags': { latest: manifest.version }, versions: { [manifest.version]: version } }),
    )
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
  const locked = published.map(({ manifest: { name, ...rest }, integrity }) => [`node_modules/${name}`, { ...rest, integrity }])
  return {
    url,
    locked: Object.fromEntries(locked) as Record<string, object>,
    async [Symbol.asyncDispose]() {
      const closed = new Promise((resolve) => server.close(resolve))
      server.closeAllConnections()
      await closed
    },
  }
}

/** Stored without compression, because a runtime is large. */
function pack(manifest: object, files: RegistryPackage['files']): Buffer {
  const folder = mkdtempSync(join(tmpdir(), 'switchyard-registry-'))
  try {
    const all: RegistryPackage['files'] = { ...files, 'package.json': JSON.stringify(manifest) }
    for (const [path, content] of Object.entries(all)) {
      const file = join(folder, 'package', path)
      mkdirSync(dirname(file), { recursive: true })
      if (typeof content === 'string') writeFileSync(file, content, { mode: 0o755 })
      else cpSync(content.copyOf, file)
    }
    const tar = execFileSync('tar', ['-cf', '-', '-C', folder, 'package'], { maxBuffer: 1024 ** 3 })
    return gzipSync(tar, { level: 0 })
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
