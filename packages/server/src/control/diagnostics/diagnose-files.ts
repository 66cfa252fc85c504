// What the file system tells about the installation: room on the disk, and who can read the key that opens stored secrets.

import { stat, statfs } from 'node:fs/promises'
import { dirname } from 'node:path'
import type { Finding } from './finding.ts'
import type { Installation } from './operator-tools.ts'

const MIB = 1024 * 1024
/** Below this a burst fills the disk before anybody looks. */
const LEAST_FREE_BYTES = 256 * MIB

export async function checkDisk(storePath: string, storedBytes: number | null): Promise<Finding> {
  try {
    const { bavail, bsize } = await statfs(dirname(storePath))
    return judgeDisk(bavail * bsize, storedBytes)
  } catch (error) {
    return { state: 'unknown', message: `The disk could not be asked: ${(error as Error).message}.`, advice: null }
  }
}

export function judgeDisk(freeBytes: number, storedBytes: number | null): Finding {
  const message = `${inMib(freeBytes)} are free${storedBytes === null ? '' : `, and the store takes ${inMib(storedBytes)}`}.`
  if (freeBytes < LEAST_FREE_BYTES)
    return { state: 'bad', message, advice: 'Make room: when the disk is full, calls are answered with 503 until there is some.' }
  if (storedBytes !== null && freeBytes < storedBytes)
    return {
      state: 'warning',
      message,
      advice: 'There is no room for a backup beside the store. Make room, or keep messages for fewer days.',
    }
  return { state: 'good', message, advice: null }
}

export async function checkSecretKey({ secretKey }: Installation): Promise<Finding> {
  if (secretKey.from === 'environment')
    return { state: 'good', message: 'The key that encrypts stored secrets is in SWITCHYARD_SECRET_KEY.', advice: null }
  const { path } = secretKey
  try {
    const { mode } = await stat(path)
    const bits = (mode & 0o777).toString(8).padStart(3, '0')
    if ((mode & 0o077) !== 0 && process.platform !== 'win32')
      return {
        state: 'bad',
        message: `Others can read the key that encrypts stored secrets: ${path} has mode ${bits}.`,
        advice: `chmod 600 ${path}`,
      }
    return { state: 'good', message: `The key that encrypts stored secrets is in ${path}, for its owner alone.`, advice: null }
  } catch {
    return {
      state: 'bad',
      message: `The key that encrypts stored secrets is gone: ${path} cannot be read.`,
      advice: 'Put it back before the service is started again: without it stored secrets cannot be opened.',
    }
  }
}

function inMib(bytes: number): string {
  return bytes < 10 * MIB ? `${Math.ceil(bytes / 1024)} KiB` : `${Math.floor(bytes / MIB)} MiB`
}
